! The simulator of simulate.c as a plugin in Fortran.
!
!     gfortran -O2 -shared -fPIC -o libsimulate.so simulate.f90
!
! It names neither features nor parameters: those of the study come in their order. The state of the
! generator is local, so neyman_plugin_thread_safe may return 1.
module simulate
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: length = 4

contains

  integer(c_int) function abi() bind(C, name="neyman_plugin_abi")
    abi = 1
  end function

  integer(c_int) function features() bind(C, name="neyman_plugin_features")
    features = length
  end function

  integer(c_int) function thread_safe() bind(C, name="neyman_plugin_thread_safe")
    thread_safe = 1
  end function

  integer(c_int) function sample(theta, n, seed, out, message, message_size) &
      bind(C, name="neyman_plugin_sample")
    real(c_double), intent(in) :: theta(2)
    integer(c_int64_t), value :: n, seed, message_size
    real(c_double), intent(out) :: out(length, n)
    character(kind=c_char), intent(inout) :: message(message_size)
    integer(c_int64_t) :: i, state
    integer :: t
    real(c_double) :: x
    state = seed
    do i = 1, n
      x = 0
      do t = 1, length
        x = theta(1) * x + theta(2) * normal(state)
        out(t, i) = x
      end do
    end do
    message(1) = c_null_char
    sample = 0
  end function

  ! Uniform in (0, 1): Marsaglia's xorshift of 64 bits, whose state must not be zero.
  real(c_double) function uniform(state)
    integer(c_int64_t), intent(inout) :: state
    integer :: k
    if (state == 0) state = 88172645463325252_c_int64_t
    do k = 1, 2
      state = ieor(state, ishft(state, 13))
      state = ieor(state, ishft(state, -7))
      state = ieor(state, ishft(state, 17))
    end do
    uniform = (real(ishft(state, -12), c_double) + 0.5_c_double) / 2.0_c_double**52
  end function

  real(c_double) function normal(state)
    integer(c_int64_t), intent(inout) :: state
    real(c_double) :: radius
    radius = sqrt(-2 * log(uniform(state)))
    normal = radius * cos(6.283185307179586_c_double * uniform(state))
  end function

end module

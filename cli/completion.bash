# Completion of neyman for bash, as `neyman completion bash` prints it. The program itself says what
# may come next, so that this never falls behind it.
_neyman() {
  local kind value about folders= current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME}
  [[ $current == = ]] && current=
  COMPREPLY=()
  while IFS=$'\t' read -r kind value about; do
    case $kind in
      word) COMPREPLY+=("$value") ;;
      files)
        folders=yes
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X "!$value" -- "$current") ;;
      folders) folders=yes ;;
    esac
  done < <("$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ $folders ]] || return 0
  compopt -o filenames 2>/dev/null
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$current")
}
complete -F _neyman neyman

#compdef neyman
# Completion of neyman for zsh, as `neyman completion zsh` prints it. The program itself says what
# may come next, so that this never falls behind it.
_neyman() {
  local kind value about folders
  local -a found patterns
  while IFS=$'\t' read -r kind value about; do
    case $kind in
      word) found+=("${value//:/\\:}${about:+:$about}") ;;
      files) patterns+=("$value") ;;
      folders) folders=1 ;;
    esac
  done < <("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && _describe neyman found
  (( ${#patterns} )) && _files -g "${(j: :)patterns}"
  [[ -n $folders ]] && _files -/
}
if [[ $funcstack[1] == _neyman ]]; then
  _neyman "$@"
else
  compdef _neyman neyman
fi

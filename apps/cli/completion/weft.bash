# Completion of weft for bash.  weft knows what can follow.  SPDX-License-Identifier: ISC
_weft() {
	local word=${COMP_WORDS[COMP_CWORD]} line before IFS=$'\n'
	local -a words
	# As they were typed, without backslashes: bash itself cuts words at = and :.
	IFS=' ' read -a words <<<"${COMP_LINE:0:COMP_POINT}"
	[[ ${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=('')
	before=${words[-1]%"${words[-1]##*[=:]}"}
	[[ $word == [=:] ]] && word=
	COMPREPLY=()
	while read -r line; do
		case $line in
		@files) compopt -o filenames && COMPREPLY+=($(compgen -f -- "$word")) ;;
		@directories) compopt -o filenames && COMPREPLY+=($(compgen -d -- "$word")) ;;
		@commands) COMPREPLY+=($(compgen -c -- "$word")) ;;
		*)
			[[ $line == *[=\(] ]] && compopt -o nospace
			COMPREPLY+=("$(printf %q "${line#"$before"}")")
			;;
		esac
	done < <(weft --complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _weft weft

# Completion of weft for fish.  weft knows what can follow.  SPDX-License-Identifier: ISC
function __weft_complete
	set -l word (commandline -ct)
	for line in (weft --complete -- (commandline -opc)[2..-1] $word 2>/dev/null)
		switch $line
			case @files
				__fish_complete_path $word
			case @directories
				__fish_complete_directories $word
			case @commands
				__fish_complete_command
			case '*'
				echo $line
		end
	end
end
complete -c weft -f -a '(__weft_complete)'

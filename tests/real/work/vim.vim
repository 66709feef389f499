" SPDX-License-Identifier: MIT
" Edit a text: patterns, registers, sorting, undo, a script with exceptions and lambdas.
set nocompatible encoding=utf-8
call setline(1, map(range(1, 3000), {i, n -> printf('%04d line %x', n * 7919 % 3001, n * 31337)}))
%sort
%s/\v(\d+) line (\x+)/\=printf("%s:%d", submatch(2), str2nr(submatch(1)))/
g/0:/normal! A!
g/^1/m0
v/[a-f]/d _
normal! gg"ayy10"apG
for _ in range(20)
	execute "normal! ggddp\<C-a>"
endfor
let before = undotree().seq_cur
1,100delete _
undo
redo
let words = {}
for line in getline(1, '$')
	for word in split(line, '\W\+')
		let words[word[0]] = get(words, word[0], 0) + 1
	endfor
endfor
call append('$', map(sort(keys(words)), {_, k -> k . '=' . g:words[k]}))
function! Deep(n)
	if a:n == 0
		throw 'bottom'
	endif
	return Deep(a:n - 1) + 1
endfunction
for depth in [1, 20, 90]
	try
		call Deep(depth)
	catch /bottom/
		call append('$', 'caught ' . v:exception . ' ' . depth)
	finally
		call append('$', 'finally')
	endtry
endfor
call append('$', [sha256(join(getline(1, '$'))), string(json_decode('{"a": [1, 2.5, null]}')), strftime('%Y', 0)])
call append('$', systemlist('echo from a shell; exit 3') + [v:shell_error])
call append('$', [string(matchstrpos('αβγ delta', '\v[γ]\s(\w)')), toupper('straße'), string(log(10))])
syntax on
set filetype=c
call setline(1, ['int main(void) { /* comment */ return "x"[0]; }'])
call append('$', [synIDattr(synID(1, 1, 1), 'name'), synIDattr(synID(1, 22, 1), 'name')])
write! out
2,20!sort -r
%print
cquit 5

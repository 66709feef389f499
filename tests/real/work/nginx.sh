# SPDX-License-Identifier: MIT
# nginx with two workers under ab and curl: files, ranges, compression, rewriting, a proxy to itself.
set -eu
mkdir -p logs site/deep tmp
seq 1 20000 >site/numbers
head -c 200000 /dev/zero >site/zeros
echo '<h1><!--# echo var="name" default="nobody" --></h1><!--# include virtual="/deep/part" -->' >site/page.shtml
echo part >site/deep/part
cat >conf <<END
user root;
daemon off;
worker_processes 2;
pid $PWD/logs/pid;
error_log stderr notice;
events { worker_connections 200; }
http {
	log_format short '\$request_method \$uri \$status';
	access_log logs/access short;
	client_body_temp_path tmp/body;
	proxy_temp_path tmp/proxy;
	fastcgi_temp_path tmp/fastcgi;
	uwsgi_temp_path tmp/uwsgi;
	scgi_temp_path tmp/scgi;
	gzip on;
	gzip_types *;
	server_tokens off;
	log_not_found off; # the log is a pipe, which could fill
	upstream itself { server 127.0.0.1:$PORT; keepalive 4; }
	server {
		listen 127.0.0.1:$PORT;
		root $PWD/site;
		sendfile on;
		location /deep/ { autoindex on; }
		location /proxy/ { proxy_pass http://itself/; proxy_http_version 1.1; }
		location ~ ^/word/(?<name>\w+)\$ { ssi on; ssi_types *; set \$name \$name; rewrite ^ /page.shtml break; }
		location /moved { return 301 /numbers; }
		location = /auth { allow 10.0.0.0/8; deny all; }
		location /text { default_type text/plain; return 200 "\$request_method \$arg_x\n"; }
		error_page 404 /deep/part;
	}
}
END
mkfifo log
nginx -p "$PWD" -c "$PWD/conf" -e stderr 2>log &
pid=$!
trap 'kill $pid 2>/dev/null || :' EXIT
exec 3<log
until_log() {
	while read -r line <&3; do
		case $line in *"$1"*) return ;; esac
	done
	echo "no '$1' in the log"
	exit 1
}
until_log 'start worker process '
until_log 'start worker process '

at=http://127.0.0.1:$PORT
load() {
	ab -q "$@" | grep -E '^(Complete requests|Failed requests|Non-2xx|HTML transferred|Document Length)'
}
requests=3000
load -n "$requests" -c 20 -k $at/numbers
load -n "$requests" -c 20 $at/deep/part
load -n "$((requests / 4))" -c 4 -H 'Accept-Encoding: gzip' $at/numbers
load -n "$((requests / 4))" -c 10 -k $at/proxy/deep/part
load -n "$((requests / 4))" -c 10 $at/nowhere

get() { curl -sS "$@"; }
get $at/numbers | sha256sum
get --compressed $at/numbers | sha256sum
get -r 1000-1999,5000-5099 -H 'X: y' -o /dev/null -w '%{http_code} %{size_download}\n' $at/numbers
get -r -500 $at/zeros | sha256sum
get -L -w '%{num_redirects}\n' $at/moved | tail -n 1
get $at/word/hello
get $at/proxy/word/again
get "$at/text?x=1%202"
get -X DELETE $at/numbers | head -n 1
get -d a=b -o /dev/null -w '%{http_code}\n' $at/numbers
get $at/deep/ | sed 's/ [0-9][0-9]-.*//'
get -o /dev/null -w '%{http_code}\n' $at/auth
get --path-as-is $at/../../etc/passwd | head -n 1
get -I $at/zeros | grep -i ^content
printf 'nonsense\r\n\r\n' | get telnet://127.0.0.1:$PORT | head -n 1
nginx -p "$PWD" -c "$PWD/conf" -e stderr -s reload 2>/dev/null
until_log 'start worker process '
until_log 'start worker process '
get $at/deep/part
nginx -p "$PWD" -c "$PWD/conf" -e stderr -s quit 2>/dev/null
wait $pid && echo 'ended'
sort logs/access | uniq -c
rm -rf log logs tmp conf site

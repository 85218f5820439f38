# Puts all questions at once, by ping and by opening a TCP connection, whichever the host can do. An answer of
# any kind means that packets go there and come back; a refusal too, where nobody else refuses ($refused).
# by_ping BYTES ADDRESS
by_ping() {
    case $2 in
    *:*) if [ "$ping6" = yes ]; then set -- ping6 -s "$1" "$2"; else set -- ping -s "$1" "$2"; fi ;;
    *) set -- ping -s "$1" "$2" ;;
    esac
    case $ping in
    own) ;;
    busybox) set -- busybox "$@" ;;
    *) return 2 ;;
    esac
    "$@" -c 1 -W 1 </dev/null >/dev/null 2>&1
}
# by_tcp PORT ADDRESS
by_tcp() {
    case $tcp in
    bash)
        said=$(timeout 1 bash -c "exec 3<>/dev/tcp/$2/$1" 2>&1 </dev/null) && return 0
        case $refused$said in answered*refused*) return 0 ;; esac
        return 1
        ;;
    perl)
        perl -e 'use Socket qw(:DEFAULT getaddrinfo); use Errno; my ($e, $i) = getaddrinfo($ARGV[1], $ARGV[0], {flags => Socket::AI_NUMERICHOST(), socktype => SOCK_STREAM});
            exit 1 if $e; socket(my $s, $i->{family}, SOCK_STREAM, 0) or exit 1; alarm 1;
            exit(connect($s, $i->{addr}) || ($ARGV[2] eq "answered" && $!{ECONNREFUSED}) ? 0 : 1)' "$1" "$2" "$refused" </dev/null >/dev/null 2>&1
        ;;
    python3)
        python3 -c 'import socket, sys
try: socket.create_connection((sys.argv[2], int(sys.argv[1])), 1)
except ConnectionRefusedError: sys.exit(sys.argv[3] != "answered")' "$1" "$2" "$refused" </dev/null >/dev/null 2>&1
        ;;
    *) return 2 ;;
    esac
}
# try NUMBER HOW SIZE-OR-PORT ADDRESS
try() {
    "by_$2" "$3" "$4"
    case $? in
    0) echo "probe=$1 answered" ;;
    2) ;;
    *) echo "probe=$1 silent" ;;
    esac
}

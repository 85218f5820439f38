# Tries every peer at once, by ping and by opening a TCP connection, whichever the host can do. An answer of
# any kind, a refusal too, means that packets go there and come back.
by_ping() {
    case $1 in
    *:*) if [ "$ping6" = yes ]; then set -- ping6 "$1"; else set -- ping "$1"; fi ;;
    *) set -- ping "$1" ;;
    esac
    case $ping in
    own) ;;
    busybox) set -- busybox "$@" ;;
    *) return 2 ;;
    esac
    "$@" -c 1 -W 1 </dev/null >/dev/null 2>&1
}
by_tcp() {
    case $tcp in
    bash)
        said=$(timeout 1 bash -c "exec 3<>/dev/tcp/$1/$2" 2>&1 </dev/null) && return 0
        case $said in *refused*) return 0 ;; esac
        return 1
        ;;
    perl)
        perl -e 'use Socket qw(:DEFAULT getaddrinfo); use Errno; my ($e, $i) = getaddrinfo($ARGV[0], $ARGV[1], {flags => Socket::AI_NUMERICHOST(), socktype => SOCK_STREAM});
            exit 1 if $e; socket(my $s, $i->{family}, SOCK_STREAM, 0) or exit 1; alarm 1;
            exit(connect($s, $i->{addr}) || $!{ECONNREFUSED} ? 0 : 1)' "$1" "$2" </dev/null >/dev/null 2>&1
        ;;
    python3)
        python3 -c 'import socket, sys
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)
except ConnectionRefusedError: pass' "$1" "$2" </dev/null >/dev/null 2>&1
        ;;
    *) return 2 ;;
    esac
}
try() {
    for method in ping tcp; do
        "by_$method" "$2" "$3"
        case $? in
        0) echo "probe=$1 $method answered" ;;
        2) ;;
        *) echo "probe=$1 $method silent" ;;
        esac
    done
}

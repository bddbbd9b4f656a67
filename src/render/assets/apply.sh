#!/bin/sh
# Gives a guest with systemd the users and units that /etc/labrig/users and /etc/labrig/services
# say. Runs as root of the guest's disk before systemd starts, so that all of it counts from the
# first service on; once for each seed. What it changed it remembers in /var/lib/labrig, to undo
# it when a later seed does not say it any more. check.sh tells what did not work.
# $1 stands before these two directories in tests.
export SYSTEMD_OFFLINE=1
wanted=${1:-}/etc/labrig
state=${1:-}/var/lib/labrig
cmp -s $wanted/seed-id $state/applied && exit 0
mkdir -p $state
: >$state/problems

# Runs a command for $1, and notes what it says when it fails.
try() {
    what=$1
    shift
    said=$("$@" 2>&1) || echo "$what:" $said >>$state/problems
}

# Whether the file $2 has a line whose first word, before $3, is $1.
names() {
    [ -e "$2" ] || return 1
    while IFS="$3" read -r entry rest; do
        [ "$entry" = "$1" ] && return 0
    done <"$2"
    return 1
}

# Keeps the lines of $1 whose first word the file $2 names.
forget() {
    while read -r line; do
        names "${line%% *}" "$2" "$3" && echo "$line"
    done <"$1" >"$1.new"
    mv "$1.new" "$1"
}

user() { # name system shell groups password
    for group in $(echo "$4" | tr , ' '); do
        getent group "$group" >/dev/null || try "group $group" groupadd "$group"
    done
    if ! id "$1" >/dev/null 2>&1; then
        names "$1" $state/users ' ' || echo "$1" >>$state/users
        case $2 in
        system) try "user $1" useradd --system --no-create-home --shell "$3" "$1" ;;
        *) try "user $1" useradd --create-home --shell "$3" "$1" ;;
        esac
    fi
    if names "$1" $state/users ' '; then
        try "user $1" usermod --shell "$3" --groups "$4" --password "${5:-!}" "$1"
    else
        # It came with the image: it only gains.
        try "user $1" usermod --shell "$3" ${4:+--append --groups "$4"} ${5:+--password "$5"} "$1"
    fi
}

unit() { # name state
    [ "$2" = masked ] || try "unit $1" systemctl --quiet unmask "$1"
    case $2 in
    masked) try "unit $1" systemctl --quiet mask "$1" ;;
    enabled) try "unit $1" systemctl --quiet enable "$1" ;;
    disabled) try "unit $1" systemctl --quiet disable "$1" ;;
    esac
}

if [ -e $state/users ]; then
    while read -r name; do
        names "$name" $wanted/users : || ! id "$name" >/dev/null 2>&1 || try "user $name" userdel "$name"
    done <$state/users
    forget $state/users $wanted/users :
fi
if [ -e $wanted/users ]; then
    while IFS=: read -r name system shell groups password; do
        user "$name" "$system" "$shell" "$groups" "$password"
    done <$wanted/users
fi

if [ -e $state/services ]; then
    while read -r name before; do
        names "$name" $wanted/services ' ' || unit "$name" "$before"
    done <$state/services
    forget $state/services $wanted/services ' '
fi
if [ -e $wanted/services ]; then
    while read -r name wish; do
        if ! names "$name" $state/services ' '; then
            before=$(systemctl is-enabled "$name" 2>/dev/null)
            if [ -z "$before" ] || [ "$before" = not-found ]; then
                echo "there is no unit $name" >>$state/problems
                continue
            fi
            echo "$name $before" >>$state/services
        fi
        unit "$name" "$wish"
    done <$wanted/services
fi

cp $wanted/seed-id $state/applied

#!/bin/sh
# Says which settings this guest did not take, each on a line; exits with 1 when there are any.
# labrig runs it once the guest is up.
set -f
problems=
say() {
    echo "$*"
    problems=1
}
cd /etc/labrig || exit 1

# What apply did not manage.
if [ -s /var/lib/labrig/problems ]; then
    cat /var/lib/labrig/problems
    problems=1
fi

# KEY PATH VALUE
if [ -e sysctl ]; then
    while read -r key path value; do
        if [ ! -e "/proc/sys/$path" ]; then
            say "the kernel has no sysctl $key"
        # What can only be written is believed.
        elif seen=$(cat "/proc/sys/$path" 2>/dev/null); then
            # Its parts are separated by tabs.
            seen=$(echo $seen)
            [ "$seen" = "$value" ] || say "sysctl $key is $seen, not $value: the kernel refused it or something else set it"
        fi
    done <sysctl
fi

# NAME SOFT HARD KERNEL'S NAME
if [ -e limits ]; then
    while read -r name soft hard kernel; do
        set -- $(sed -n "s/^$kernel  *//p" /proc/self/limits)
        [ "$1 $2" = "$soft $hard" ] || say "limit $name of a session is $1 and at most $2, not $soft and $hard"
    done <limits
fi

# NAME STATE
if [ -e services ]; then
    while read -r unit state; do
        seen=$(systemctl is-enabled "$unit" 2>/dev/null)
        [ "$seen" = "$state" ] || say "unit $unit is ${seen:-not there}, not $state"
    done <services
fi

# NAME:SYSTEM:SHELL:GROUPS:PASSWORD
if [ -e users ]; then
    while IFS=: read -r name rest; do
        id "$name" >/dev/null 2>&1 || say "there is no user $name"
    done <users
fi

[ -z "$problems" ]

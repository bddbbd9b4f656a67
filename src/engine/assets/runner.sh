#!/bin/sh
# Runs units of work on a guest, detached from the connection that asked for them.
#
# labrig puts this file on a guest under a name that carries its digest and calls it by SSH. It
# needs a POSIX shell and the usual tools; busybox and dash will do.
#
#   runner run DIR DEADLINE WAIT LENGTH BOOT <command
#       Starts the unit DIR unless it was ever started, waits up to WAIT seconds for its end and
#       prints the report. Asking again is harmless: `mkdir DIR` is the lock.
#   runner stop DIR             Ends a unit, and keeps it from starting if it never did.
#   runner sweep UNITS MARKER   Ends every unit below UNITS and whatever trials left behind; says
#                               whether MARKER is there, and takes away those of other runs
#                               beside it, `setup-…`.
#   runner mark MARKER          Leaves a marker.
#   runner put TO MODE TOTAL OFFSET LENGTH <part
#                               Takes one part of a file; the last part puts it in place.
#
# A unit's processes carry LABRIG_UNIT=DIR: in their environment, so that they are found even when
# they forked away. DIR holds:
#   command   what is run            stdout, stderr   what it printed
#   events    FIFO: `exit STATUS UPTIME` from the command, `stop` from whoever wants its end
#   alive     FIFO that the supervisor holds open; it reads as ended when the supervisor is gone
#   done      the report, there as soon as all is over

set -u
LC_ALL=C
export LC_ALL

# Seconds between TERM and KILL, and after KILL until a process counts as unkillable.
grace=5
# Output up to this many bytes comes with the report; more is fetched on its own.
inline=262144

uptime_now() {
    read -r uptime _ </proc/uptime
    echo "$uptime"
}

# Whether a process has the text in its environment. The shell's `read` drops the NUL bytes.
carries() { # ENVIRON TEXT
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
            *"$2"*) return 0 ;;
        esac
    done 2>/dev/null <"$1"
    return 1
}

# Processes that have the text in their environment.
members() { # TEXT
    for environ in /proc/[0-9]*/environ; do
        if carries "$environ" "$1"; then
            pid=${environ#/proc/}
            echo "${pid%/environ}"
        fi
    done
}

# Ends all processes that have the text in their environment; fails when some are left.
end_members() { # TEXT
    for signal in TERM KILL; do
        rounds=0
        while [ "$rounds" -lt $((grace * 5)) ]; do
            pids=$(members "$1")
            [ -n "$pids" ] || return 0
            # Every round for KILL, since members may fork; once for TERM, which they may be busy with.
            if [ "$signal" = KILL ] || [ "$rounds" -eq 0 ]; then
                # shellcheck disable=SC2086 # a list of numbers
                kill -s "$signal" $pids 2>/dev/null
                kill -s CONT $pids 2>/dev/null
            fi
            sleep 0.2 2>/dev/null || sleep 1
            rounds=$((rounds + 1))
        done
    done
    [ -z "$(members "$1")" ]
}

# The next event of the unit at hand, or nothing after so many seconds; for $(…) only. Its FIFO is
# open as 8. Nothing but the supervisor itself may hold 9, by which its end is seen.
# shellcheck disable=SC2016 # for the inner shell
next_event() { # SECONDS
    exec 9>&-
    exec timeout "$1" sh -c 'read -r event && echo "$event"' <&8
}

# Starts the command, waits for its end, a deadline or a stop, and writes the report.
supervise() { # DIR DEADLINE
    dir=$1
    exec 8<>"$dir/events"
    started=$(date +%s)
    (
        exec 9>&-
        # In place: the file's room was taken before, and there may be none any more.
        uptime_now 1<>"$dir/started"
        LABRIG_UNIT="$dir:" LC_ALL=C.UTF-8 LANG=C.UTF-8 PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" \
            sh "$dir/command" </dev/null >"$dir/stdout" 2>"$dir/stderr" 8>&-
        status=$?
        echo "exit $status $(uptime_now)" >&8
    ) &
    event=$(next_event "$2")
    case $event in
        exit*) why=exit ;;
        stop) why=stopped ;;
        *) why=timeout ;;
    esac
    left=
    if [ "$why" != exit ]; then
        # Until the command's end is told: a process that was just being started is seen only then.
        for _ in 1 2 3; do
            end_members "LABRIG_UNIT=$dir:" || left=$(members "LABRIG_UNIT=$dir:" | tr '\n' ' ')
            event=$(next_event 2)
            while [ "$event" = stop ]; do event=$(next_event 2); done
            [ -z "$event" ] || break
        done
    fi
    # What the guest had no room for is missing from the output, and the command may not have noticed.
    full=0
    head -c 4096 /dev/zero >"$dir/room" 2>/dev/null
    [ "$(size "$dir/room")" -eq 4096 ] || full=1
    rm -f "$dir/room"
    # shellcheck disable=SC2086 # words of the event
    set -- $event
    {
        echo "why $why"
        echo "exit ${2:-137}"
        echo "started $started"
        echo "seconds $(cat "$dir/started") ${3:-$(uptime_now)}"
        echo "left $left"
        echo "full $full"
    } 1<>"$dir/done.new"
    mv "$dir/done.new" "$dir/done"
}

# Waits until all is over: 0 when there is a report, 1 when the supervisor is gone without one,
# 2 when it still works after so many seconds. Blocks on the supervisor's FIFO, polls nothing.
await_end() { # DIR SECONDS
    [ ! -e "$1/done" ] || return 0
    [ -p "$1/alive" ] || return 1
    # Opened for both first: opening for reading alone would block when nobody writes.
    exec 7<>"$1/alive"
    exec 6<"$1/alive" 7>&-
    timeout "$2" cat <&6 >/dev/null 2>&1
    ended=$?
    exec 6<&-
    [ ! -e "$1/done" ] || return 0
    [ "$ended" -eq 0 ] && return 1
    return 2
}

size() { # FILE
    if [ -e "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi
}

report() { # DIR
    out=$(size "$1/stdout")
    err=$(size "$1/stderr")
    echo "labrig unit done"
    cat "$1/done"
    echo "stdout $out"
    echo "stderr $err"
    if [ $((out + err)) -le "$inline" ]; then
        echo "inline 1"
        echo
        # A unit that was stopped before it started has neither.
        cat "$1/stdout" "$1/stderr" 2>/dev/null
    else
        echo "inline 0"
        echo
    fi
}

answer() { # STATE
    echo "labrig unit $1"
    echo
    exit 0
}

# Nothing was started, for want of room; what failed has said so.
unable() { # LEFTOVER...
    rm -rf "$@"
    echo "${dir%/*} takes no more files" >&2
    exit 1
}

run() { # DIR DEADLINE WAIT LENGTH BOOT
    dir=$1
    # In another boot nobody knows whether the unit ever started.
    read -r boot </proc/sys/kernel/random/boot_id
    [ "$boot" = "$5" ] || answer rebooted
    if [ ! -d "$dir" ]; then
        mkdir -p "${dir%/*}"
        # A connection that breaks while it brings the command must not run the first half of it.
        cat >"$dir.$$" || unable "$dir.$$"
        if [ "$(size "$dir.$$")" -ne "$4" ]; then
            rm -f "$dir.$$"
            answer torn
        fi
        if mkdir "$dir" 2>/dev/null; then
            # With something in them, so that there is room for the report, whatever is printed.
            mv "$dir.$$" "$dir/command" && mkfifo "$dir/alive" "$dir/events" &&
                echo >"$dir/started" && echo >"$dir/done.new" || unable "$dir" "$dir.$$"
            # Opened here and inherited: nobody can find it closed before the supervisor runs.
            exec 9<>"$dir/alive"
            setsid sh "$0" supervise "$dir" "$2" </dev/null >/dev/null 2>&1 &
            exec 9>&-
        else
            rm -f "$dir.$$"
            [ -d "$dir" ] || unable
        fi
    fi
    # Again for the moment between another caller's mkdir and its start.
    for _ in 1 2 3; do
        await_end "$dir" "$3"
        case $? in
            0)
                report "$dir"
                exit 0
                ;;
            2) answer running ;;
        esac
        sleep 1
    done
    answer lost
}

stop() { # DIR
    if mkdir -p "${1%/*}" && mkdir "$1" 2>/dev/null; then
        printf 'why stopped\nexit 143\nstarted 0\nseconds 0 0\nleft \n' >"$1/done"
        return 0
    fi
    [ ! -e "$1/done" ] || return 0
    [ ! -p "$1/events" ] || echo stop 1<>"$1/events"
    await_end "$1" $((6 * grace)) || end_members "LABRIG_UNIT=$1:"
}

# Background processes of a trial are ended with it; those of the setup and services stay.
sweep() { # UNITS MARKER
    read -r boot </proc/sys/kernel/random/boot_id
    echo "labrig sweep"
    echo "boot $boot"
    # Not every machine's directory is gone after a reboot.
    marked=
    { read -r marked <"$2"; } 2>/dev/null
    if [ "$marked" = "$boot" ]; then echo "marker 1"; else echo "marker 0"; fi
    # What another run set up does not last beyond this one.
    for other in "${2%/*}"/setup-*; do
        [ "$other" = "$2" ] || rm -f "$other"
    done
    for dir in "$1"/*; do
        [ -d "$dir" ] || continue
        if [ ! -e "$dir/done" ]; then
            echo "unfinished ${dir##*/}"
            stop "$dir"
        fi
    done
    for pid in $(members "LABRIG_UNIT=$1/trial."); do
        name=
        { read -r name </proc/"$pid"/comm; } 2>/dev/null
        echo "ended $pid $name"
    done
    if end_members "LABRIG_UNIT=$1/trial."; then
        rm -rf "$1"
        echo "quiet 1"
    else
        echo "quiet 0"
    fi
    echo
}

mark() { # MARKER
    mkdir -p "${1%/*}" && cat /proc/sys/kernel/random/boot_id >"$1"
}

put() { # TO MODE TOTAL OFFSET LENGTH
    [ ! -d "$1" ] || { echo "$1 is a directory" >&2; exit 1; }
    parent=${1%/*}
    part=$parent/.labrig-${1##*/}
    mkdir -p "${parent:-/}" || exit 1
    cat >"$part.in" || exit 1
    [ "$(size "$part.in")" -eq "$5" ] || { echo "the file came torn" >&2; exit 1; }
    if [ "$4" -eq 0 ]; then
        mv "$part.in" "$part"
    else
        [ "$(size "$part")" -eq "$4" ] || { echo "a part of the file is missing" >&2; exit 1; }
        cat "$part.in" >>"$part" || exit 1
        rm -f "$part.in"
    fi
    if [ $(($4 + $5)) -eq "$3" ]; then
        chmod "$2" "$part" && mv "$part" "$1"
    fi
}

verb=$1
shift
case $verb in
    run | stop | sweep | mark | put | supervise) "$verb" "$@" ;;
    *)
        echo "unknown verb $verb" >&2
        exit 64
        ;;
esac

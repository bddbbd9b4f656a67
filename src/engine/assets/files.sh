#!/bin/sh
# Puts files in place on a machine that is not labrig's own, and takes them away again. What they
# replace is kept and put back.
#
#   files deliver DIR DIGEST <tar    Puts the files of the archive in place, each whole or not at all,
#                                    and takes away those delivered before that are not in it.
#   files remove DIR                 Takes all away, and DIR with it.
#
# DIR holds:
#   list     paths of delivered files    saved/PATH   what was there before
#   digest   digest of all of them, there when they are in place
#
# A path is in the list before its file is touched, and after what was there was saved.
set -u
umask 077

give_back() { # PATH
    rm -f "$1"
    if [ -e "saved$1" ] || [ -L "saved$1" ]; then
        mkdir -p "${1%/*}/" && mv "saved$1" "$1"
    fi
}

put() { # PATH
    if ! grep -qxF -e "$1" list; then
        if [ -e "$1" ] || [ -L "$1" ]; then
            mkdir -p "saved${1%/*}" && cp -pP "$1" "saved$1" || return 1
        fi
        printf '%s\n' "$1" >>list || return 1
    fi
    (umask 022 && mkdir -p "${1%/*}/") || return 1
    cp -p "new$1" "$1.labrig-new" && mv -f "$1.labrig-new" "$1"
}

deliver() { # DIR DIGEST
    mkdir -p "$1" && cd "$1" || exit 1
    rm -rf new digest && mkdir new && touch list && tar -xpof - -C new || exit 1
    (cd new && find . -type f) | sed 's|^\.||' >wanted
    cp list before || exit 1
    while IFS= read -r path; do
        grep -qxF -e "$path" wanted || give_back "$path" || exit 1
    done <before
    while IFS= read -r path; do
        [ ! -d "$path" ] || {
            echo "$path is a directory" >&2
            exit 1
        }
        put "$path" || exit 1
    done <wanted
    mv wanted list && echo "$2" >digest && rm -rf new before
}

remove() { # DIR
    [ -d "$1" ] && cd "$1" || exit 0
    [ -e list ] || : >list
    while IFS= read -r path; do
        give_back "$path" || exit 1
    done <list
    here=$PWD
    cd / && rm -rf "$here"
}

verb=$1
shift
case $verb in
    deliver | remove) "$verb" "$@" ;;
    *)
        echo "unknown verb $verb" >&2
        exit 64
        ;;
esac

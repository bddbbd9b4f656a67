#!/bin/sh
# Prepares the root file system in which commands of a lab's host domains run, in the lab's own
# namespaces: the machine's, with everything that is written kept in the lab's directory, and /proc,
# /sys, /dev, /run and /tmp of the lab's own.
#
#   root.sh DIRECTORY
#
# Makes DIRECTORY/merged, unless that was done. What is mounted ends with the namespaces.
set -eu
umask 022
mkdir -p "$1"
# A path with a comma or a colon could not stand in mount's options: those of ours are relative.
cd "$1"
exec 9>lock
flock 9
# The last thing that is mounted.
! mountpoint -q merged/proc/sys/net || exit 0
umount -R -l merged 2>/dev/null || :

# Root of a user namespace is not the machine's: overlays keep their marks in other attributes then.
marks=,userxattr
read -r inside outside _ </proc/self/uid_map
[ "$inside $outside" != '0 0' ] || marks=

# Mount points, one a line, blanks and the like in octal; those of the lab's own libvirt are not the
# machine's.
mounts=$(cut -d ' ' -f 5 /proc/self/mountinfo | grep -v '^/[a-z/]*/libvirt$')

holds_mounts() { # DIRECTORY
    case $mounts in *"
${1%/}/"*) return 0 ;; esac
    return 1
}

# Shows a directory of the machine. An overlay is not laid over one that holds mounts: the kernel
# refuses what would show an ordinary user the files below them. So it is taken apart.
show() { # DIRECTORY
    case $1 in
        /proc | /sys | /dev | /run | /tmp) return 0 ;;
        *[\\,:]*) return 0 ;;
    esac
    if ! holds_mounts "$1"; then
        lay "$1"
        return 0
    fi
    mkdir -p "merged$1"
    for entry in "${1%/}"/* "${1%/}"/.[!.]*; do
        if [ -L "$entry" ]; then
            cp -P "$entry" "merged$entry"
        elif [ -d "$entry" ]; then
            show "$entry"
        elif [ -f "$entry" ] && [ -r "$entry" ] && [ "$(stat -c %s "$entry")" -le 1048576 ]; then
            [ -e "merged$entry" ] || cp -p "$entry" "merged$entry"
        fi
    done
}

lay() { # DIRECTORY
    mkdir -p "merged$1" "layers$1/upper" "layers$1/work"
    if [ -n "$marks" ] && [ ! -e "layers$1/skeleton" ]; then
        skeleton "$1"
        : >"layers$1/skeleton"
    fi
    mount -t overlay \
        -o "lowerdir=$1,upperdir=layers$1/upper,workdir=layers$1/work$marks" overlay "merged$1" ||
        # A file system that takes no overlay is not shown.
        echo "labrig: host domains do not see $1" >&2
}

# The machine's root is nobody to an ordinary user, so nothing could be put into its directories:
# those where services keep their things get one of the user's above them.
skeleton() { # DIRECTORY
    case $1 in
        /usr) set -- "$1" /usr/local ;;
        /etc* | /opt* | /srv* | /var*) set -- "$1" "$1" ;;
        *) return 0 ;;
    esac
    find "$2" -xdev -type d -print0 2>/dev/null |
        (cd "layers$1/upper" && sed -z "s|^$1/*||" | xargs -0 -r mkdir -p -- 2>/dev/null) || :
    [ ! -d "layers$1/upper/tmp" ] || chmod 1777 "layers$1/upper/tmp"
}

show /
mkdir -p merged/proc merged/sys merged/dev merged/run merged/tmp tmp home
mount -t tmpfs -o mode=0755 tmpfs merged/run
mkdir -p merged/run/lock
chmod 1777 tmp merged/run/lock
mount --bind tmp merged/tmp
if [ -n "$marks" ]; then
    # It is of the machine's root, and closed to everybody else.
    mkdir -p merged/root
    chmod 700 home
    mount --bind home merged/root
fi
mount -t tmpfs -o mode=0755 tmpfs merged/dev
mkdir -p merged/dev/net merged/dev/pts merged/dev/shm
for device in null zero full random urandom tty kvm net/tun; do
    [ -c "/dev/$device" ] || continue
    : >"merged/dev/$device"
    mount --bind "/dev/$device" "merged/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts merged/dev/pts
mount -t tmpfs -o mode=1777 tmpfs merged/dev/shm
ln -s pts/ptmx merged/dev/ptmx
ln -s /proc/self/fd merged/dev/fd
ln -s /proc/self/fd/0 merged/dev/stdin
ln -s /proc/self/fd/1 merged/dev/stdout
ln -s /proc/self/fd/2 merged/dev/stderr
# What the kernel has once for the whole machine is not the lab's to change; its network is.
mount --bind /sys merged/sys
mount -o remount,bind,ro merged/sys
mount -t proc proc merged/proc
mount --bind merged/proc/sys merged/proc/sys
mount -o remount,bind,ro merged/proc/sys
mount --bind /proc/sys/net merged/proc/sys/net

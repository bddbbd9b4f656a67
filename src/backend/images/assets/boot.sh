# What the first processes of both kinds of guest have in common. They go on after every failure,
# for a guest that answers on SSH can be asked what is wrong.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin

console=/dev/console
say() { echo "labrig: $*" >"$console"; }

mount_kernel_filesystems() {
    mount -t devtmpfs -o mode=0755 devtmpfs /dev
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
}

# Loads the modules that a list names.
load_modules() {
    while read -r module; do
        insmod "/lib/modules/$module" || say "module $module does not load"
    done <"/lib/labrig/$1"
}

# Finds the disk with serial $1 below the directory $2, as in vdb.
disk_with_serial() {
    disk=
    for block in "$2"/block/vd*; do
        serial=
        read -r serial 2>/dev/null <"$block/serial"
        [ "$serial" = "$1" ] && disk=${block##*/}
    done
    [ -n "$disk" ]
}

# Unpacks the seed disk into $1, unless it was unpacked there before.
plant_seed() {
    if ! disk_with_serial labrig-seed /sys; then
        say "there is no seed disk: this guest has no address and no keys"
        return
    fi
    seed=/dev/$disk
    planted=${1%/}/var/lib/labrig/seed-id
    if [ -e "$planted" ]; then
        # Names in the archive may start with "./".
        for name in etc/labrig/seed-id ./etc/labrig/seed-id; do
            tar -x -O -f "$seed" "$name" 2>/dev/null | cmp -s - "$planted" && return
        done
    fi
    [ "$1" = / ] || put_back "$1"
    if tar -x -C "$1/" -f "$seed"; then
        mkdir -p "${planted%/*}"
        cp "${1%/}/etc/labrig/seed-id" "$planted"
    else
        say "the seed disk $seed cannot be unpacked"
    fi
}

# Mounts the disks that the seed names below $1, where the kernel's filesystems are mounted too. A
# guest without its disks is not ready: what fails leaves a mark.
mount_disks() {
    root=${1%/}
    console=$root/dev/console
    failed=$root/var/lib/labrig/mounts-failed
    rm -f "$failed"
    [ -e "$root/etc/labrig/mounts" ] || return
    while read -r name filesystem directory options; do
        if ! reason=$(mount_disk </dev/null 2>&1); then
            say "$reason"
            echo "$reason" >>"$failed"
        fi
    done <"$root/etc/labrig/mounts"
}

mount_disk() {
    if ! disk_with_serial "$name" "$root/sys"; then
        echo "there is no disk $name for $directory"
        return 1
    fi
    if ! grep -qw "$filesystem" "$root/proc/filesystems"; then
        if [ -e "/lib/labrig/$filesystem.modules" ]; then
            load_modules "$filesystem.modules"
        else
            chroot "$root/" modprobe "$filesystem"
        fi
    fi
    if is_blank; then
        case $filesystem in
        # Inode tables are written now, and not while something is measured.
        ext4) options_of_mkfs='-q -F -E lazy_itable_init=0,lazy_journal_init=0' ;;
        xfs) options_of_mkfs='-q -f' ;;
        esac
        # shellcheck disable=SC2086 # a list of words
        if ! chroot "$root/" "mkfs.$filesystem" $options_of_mkfs "/dev/$disk"; then
            echo "$filesystem cannot be made on disk $name"
            return 1
        fi
    fi
    mkdir -p "$root$directory"
    if ! chroot "$root/" mount -t "$filesystem" -o "$options" "/dev/$disk" "$directory"; then
        echo "disk $name cannot be mounted on $directory as $filesystem with $options"
        return 1
    fi
}

# Whether the first and the last MiB of $disk hold zeros only. Anything else may be somebody's data.
is_blank() {
    read -r sectors <"$root/sys/block/$disk/size"
    for skip in 0 $((sectors / 2048 - 1)); do
        rest=$(dd if="$root/dev/$disk" bs=1M count=1 skip="$skip" 2>/dev/null | tr -d '\000' | head -c 1 | wc -c)
        [ "$rest" = 0 ] || return 1
    done
}

# Keeps what the seed is about to lay over in $1, and puts back what an earlier seed laid over and
# this one does not: afterwards the disk is as if only this seed had ever been there. The list of
# such files is etc/labrig/files, a path on each line.
put_back() {
    old=$1/etc/labrig/files
    originals=$1/var/lib/labrig/originals
    new=$originals/files
    mkdir -p "$originals"
    tar -x -O -f "$seed" etc/labrig/files >$new 2>/dev/null
    while read -r path; do
        [ -e "$old" ] && grep -qxF "$path" "$old" && continue
        is_there "$1/$path" && ! is_there "$originals/$path" || continue
        mkdir -p "$originals/${path%/*}"
        cp -a "$1/$path" "$originals/$path.part" && mv "$originals/$path.part" "$originals/$path"
    done <$new
    [ -e "$old" ] && while read -r path; do
        grep -qxF "$path" $new && continue
        rm -f "$1/$path"
        is_there "$originals/$path" && mv "$originals/$path" "$1/$path"
    done <"$old"
}

is_there() { [ -e "$1" ] || [ -L "$1" ]; }

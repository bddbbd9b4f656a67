# What the first processes of both kinds of guest have in common. They go on after every failure,
# for a guest that answers on SSH can be asked what is wrong.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin

say() { echo "labrig: $*" >/dev/console; }

mount_kernel_filesystems() {
    mount -t devtmpfs -o mode=0755 devtmpfs /dev
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
}

load_modules() {
    while read -r module; do
        insmod "/lib/modules/$module" || say "module $module does not load"
    done </lib/labrig/modules
}

# Unpacks the seed disk into $1, unless it was unpacked there before.
plant_seed() {
    seed=
    for block in /sys/block/vd*; do
        serial=
        read -r serial 2>/dev/null <"$block/serial"
        [ "$serial" = labrig-seed ] && seed=/dev/${block##*/}
    done
    if [ -z "$seed" ]; then
        say "there is no seed disk: this guest has no address and no keys"
        return
    fi
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

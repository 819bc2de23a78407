#!/bin/sh
# Point-in-time recovery with PostgreSQL's own programs. docs/operators/backup.md explains each step.
#
#   point_in_time.sh archive FOLDER PATH FILE           keep a segment of the write-ahead log; for archive_command
#   point_in_time.sh base FOLDER                        copy the running database that PGHOST, PGUSER, ... name
#   point_in_time.sh restore FOLDER CLUSTER TIME [WAL]  make a new cluster as of TIME, such as '2026-11-28 03:00:00+00'
#
# FOLDER keeps the copy in base/ and the write-ahead log in wal/. WAL is the folder pg_wal of the damaged cluster, if it
# can still be read: it has the last segment, which was not archived yet.
set -eu
action=$1 folder=$2
case $action in
archive)
    # A half-written segment must never have its final name; one that exists already must not be replaced.
    target=$folder/wal/$4
    test ! -e "$target"
    cp "$3" "$target.part"
    sync "$target.part"
    mv "$target.part" "$target"
    ;;
base)
    rm -rf "$folder/base.part"
    "${PG_BASEBACKUP:-pg_basebackup}" --pgdata="$folder/base.part" --wal-method=stream --checkpoint=fast
    rm -rf "$folder/base"
    mv "$folder/base.part" "$folder/base"
    ;;
restore)
    cluster=$3 time=$4
    if [ -e "$cluster" ]; then
        echo "$cluster exists already. Name a new folder." >&2
        exit 1
    fi
    cp -Rp "$folder/base" "$cluster"
    if [ $# -gt 4 ]; then
        for segment in "$5"/????????????????????????; do
            test -e "$cluster/pg_wal/${segment##*/}" || cp -p "$segment" "$cluster/pg_wal/"
        done
    fi
    cat >> "$cluster/postgresql.auto.conf" <<END
archive_mode = off
restore_command = 'cp "$folder/wal/%f" "%p"'
recovery_target_time = '$time'
recovery_target_action = promote
END
    touch "$cluster/recovery.signal"
    echo "Start PostgreSQL on $cluster, then run: easel verify CAMPAIGN"
    ;;
*)
    echo "Unknown action $action: archive, base or restore" >&2
    exit 2
    ;;
esac

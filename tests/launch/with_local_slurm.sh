#!/usr/bin/env bash
# Runs a command inside a Slurm cluster of this one machine, which ends with it.
# usage: with_local_slurm.sh FOLDER PORT PORT COMMAND...     (ports of slurmctld and slurmd)
# Exit code 77: Slurm does not start here; its log is printed.
set -euo pipefail
folder=$1 ctld_port=$2 slurmd_port=$3
shift 3
cd "$folder"
mkdir munge state spool
chmod 755 . munge
head -c 1024 /dev/urandom >key
chmod 400 key
host=$(hostname)
cat >slurm.conf <<CONF
ClusterName=fleetx
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
stop() {
  for file in slurmd.pid slurmctld.pid munge/pid; do
    [[ -s $file ]] || continue
    pid=$(cat $file)
    kill "$pid" 2>/dev/null || continue
    for _ in {1..100}; do
      [[ -e /proc/$pid/exe ]] || break  # gone, or a zombie
      sleep 0.05
    done
  done
}
trap stop EXIT
munged --force --key-file="$folder/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
  --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2>/dev/null
if ! slurmctld -c || ! slurmd; then
  tail -n 3 slurmctld.log slurmd.log || true
  exit 77
fi
for _ in {1..100}; do
  [[ $(sinfo --noheader --format=%t 2>/dev/null) == idle ]] && break
  sleep 0.1
done
"$@"

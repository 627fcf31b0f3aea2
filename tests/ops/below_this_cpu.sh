#!/usr/bin/env bash
# Runs a command as if the CPU had no more than an instruction set. Exit code 77 where it has no more: then other tests
# have run the same.
# usage: below_this_cpu.sh avx512|avx2|sse COMMAND...
case $1 in
  avx512) more=avx512_bf16 ;;
  avx2) more=avx512bw ;;
  sse) more=avx2 ;;
  *) echo "below_this_cpu.sh: '$1' is none of avx512, avx2, sse" >&2; exit 2 ;;
esac
if ! grep -qw "$more" /proc/cpuinfo; then
  echo "SKIPPED: this CPU has no $more, so it runs $1 or less anyway"
  exit 77
fi
FLEETX_MAX_ISA=$1 exec "${@:2}"

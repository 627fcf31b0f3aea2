"""Hosts that are network namespaces of this machine, each with a link of a given rate to one switch."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

PREFIX = "fleetx-net-"  # and the id of the process that made it
NAMES = re.compile(rf"{PREFIX}(\d+)-\w+")
UNLIMITED = "unlimited"
UNITS = {"mbit": 1e6, "gbit": 1e9}
NAMED = pathlib.Path("/run/netns")  # where `ip netns` keeps them


class CannotMakeHosts(Exception):
    """This machine or this user cannot have network namespaces; the text says why."""


def bytes_per_second(rate):
    """Of a rate such as '10gbit'; None: unlimited. ValueError: not a rate."""
    found = re.fullmatch(r"([1-9]\d*)(mbit|gbit)", rate)
    if rate != UNLIMITED and not found:
        raise ValueError(f"'{rate}' is not a rate; write such as 100mbit, 10gbit or {UNLIMITED}")
    return int(found[1]) * UNITS[found[2]] / 8 if found else None


class Hosts:
    """As many hosts as asked for. They are gone after the `with` block, with all processes in them.

        with Hosts(3, "cubic") as hosts:
            hosts.limit("1gbit")
            subprocess.run([*hosts.enter(0), "ping", "-c1", hosts.address(1)])
    """

    def __init__(self, count, congestion):
        self.names = [f"{PREFIX}{os.getpid()}-h{i}" for i in range(count)]
        self.switch = f"{PREFIX}{os.getpid()}-switch"
        self.congestion = congestion

    def __enter__(self):
        why = cannot()
        if why:
            raise CannotMakeHosts(why)
        remove_left_overs()
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [*self.names, self.switch]:
            remove(name)

    def address(self, host):
        return f"10.78.0.{host + 1}"

    def enter(self, host):
        """The command that runs a command there."""
        return ["ip", "netns", "exec", self.names[host]]

    def limit(self, rate):
        """Limits every link at both ends, each of which is what one side may send."""
        speed = bytes_per_second(rate)
        for i, name in enumerate(self.names):
            for namespace, device in [(name, "eth0"), (self.switch, f"port{i}")]:
                if speed:
                    # It holds the largest packet before segmentation (64 KB), and what leaves while a timer is late.
                    burst = max(128 << 10, int(speed * 100e-6))
                    run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate,
                        "burst", str(burst), "latency", "50ms")
                else:  # fails if there is none
                    run("tc", "-n", namespace, "qdisc", "del", "dev", device, "root", check=False)

    def end_processes(self):
        """Those that a failed run has left: daemons of mpirun are in sessions of their own."""
        for name in self.names:
            end_processes(name)

    def _make(self):
        run("ip", "netns", "add", self.switch)
        run("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "bridge", "up")
        for i, name in enumerate(self.names):
            run("ip", "netns", "add", name)
            run("ip", "-n", self.switch, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", self.switch, "link", "set", f"port{i}", "master", "bridge", "up")
            run("ip", "-n", name, "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
            for device in ["lo", "eth0"]:
                run("ip", "-n", name, "link", "set", device, "up")
            # Of the route: a namespace may not change its default to one that the machine restricts.
            run("ip", "-n", name, "route", "replace", "10.78.0.0/24", "dev", "eth0", "scope", "link", "src",
                self.address(i), "congctl", self.congestion)


def cannot():
    """Why there can be no hosts here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ["ip", "tc"] if not shutil.which(tool)]
    return f"no {' and no '.join(missing)} on PATH: apt-get install iproute2" if missing else None


def remove_left_overs():
    """Those of runs that were killed."""
    for path in sorted(NAMED.glob(f"{PREFIX}*")):
        found = NAMES.fullmatch(path.name)
        if found and not lives(int(found[1]), path.stat().st_mtime):
            remove(path.name)


def lives(pid, since):
    """Whether the process of this number is the one that made something then, and not a later one."""
    try:
        started = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return False
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + started / os.sysconf("SC_CLK_TCK") <= since + 1


def remove(name):
    """Ends what runs in a namespace, and removes it."""
    if (NAMED / name).exists():
        end_processes(name)
        run("ip", "netns", "del", name, check=False)


def end_processes(name):
    for _ in range(50):
        pids = run("ip", "netns", "pids", name, check=False).stdout.split()
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if check and done.returncode:
        raise CannotMakeHosts(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done

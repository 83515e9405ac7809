"""The shape of a cluster: hosts, ranks of each, rails, their rate, and the names and addresses of all."""

from dataclasses import dataclass

MOST_HOSTS = 64
MOST_RAILS = 16
PORT = 29500


@dataclass(frozen=True)
class Shape:
    """Ranks of each host, the number of rails, their rate as tc says it (None: not shaped), and whether a
    stream's packets are all received on one processor.
    """

    ranks: tuple[int, ...]
    rails: int = 1
    rate: str | None = None
    is_steered: bool = True

    @property
    def hosts(self) -> range:
        """The numbers of the hosts."""
        return range(len(self.ranks))

    @property
    def world(self) -> int:
        """The number of ranks."""
        return sum(self.ranks)

    @property
    def links(self) -> list[tuple[int, int]]:
        """Host and rail of every link."""
        return [(host, rail) for host in self.hosts for rail in range(self.rails)]

    @property
    def interfaces(self) -> str:
        """A host's interfaces, one per rail, as settings list them."""
        return ",".join(interface(rail) for rail in range(self.rails))

    def host_of(self, said: str) -> int:
        """The host that is meant by its number, name or address."""
        for host in self.hosts:
            rails = range(self.rails)
            if said in (str(host), host_name(host), *(address(host, rail) for rail in rails)):
                return host
        raise ValueError(f"no host is called {said}; there are node0 to {host_name(self.hosts[-1])}")

    def rail_of(self, said: str) -> int:
        """The rail that is meant by its number."""
        if said in map(str, range(self.rails)):
            return int(said)
        raise ValueError(f"no rail is called {said}; there are 0 to {self.rails - 1}")


def host_name(host: int) -> str:
    """The name of a host."""
    return f"node{host}"


def interface(rail: int) -> str:
    """A host's name of its link to a rail."""
    return f"eth{rail}"


def port(host: int, rail: int) -> str:
    """The switch's name of a link."""
    return f"host{host}rail{rail}"


def address(host: int, rail: int) -> str:
    """A host's address on a rail. No other cluster sees it: each has networks of its own."""
    return f"10.77.{rail}.{host + 1}"

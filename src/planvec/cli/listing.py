"""What there is: `planvec agents` and `planvec worlds`."""

from dataclasses import dataclass

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from planvec.cli.console import out
from planvec.errors import InputError


@dataclass
class Agents:
    """List the models."""

    def run(self) -> None:
        from planvec.agents import AGENTS

        table = Table("agent", "what it is", box=None)
        for name, spec in AGENTS.items():
            table.add_row(name, spec.description)
        out.print(table)


@dataclass
class Worlds:
    """List the worlds, their skills, and the trained agents that come with planvec."""

    def run(self) -> None:
        from planvec.training.loading import find, shipped
        from planvec.training.runs import read_config
        from planvec.worlds import make, registrations

        homes = {agent: read_config(find(agent)).world for agent in shipped()}
        for name, registration in registrations().items():
            agents = [agent for agent, home in homes.items() if home == name]
            try:
                skills = f"skills: {', '.join(make(name).skills)}"
            except InputError as error:  # an extra that is not installed
                skills = escape(str(error))
            out.print(f"[bold]{name}[/]: {registration.description}", highlight=False)
            out.print(Padding(skills, (0, 0, 0, 4)), highlight=False)
            if agents:
                out.print(Padding(f"trained agents: {', '.join(agents)}", (0, 0, 0, 4)), highlight=False)

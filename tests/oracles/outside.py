"""A pure world's session as one that is stepped from outside, as a simulator's is."""

from planvec.worlds.protocol import Session


class OutsideSession(Session):
    def __init__(self, inner):
        self.inner = inner

    def observe(self):
        return self.inner.observe()

    def step(self, actions, going):
        return self.inner.step(actions, going)

    def judge(self, asked):
        return self.inner.judge(asked)

    def steps(self):
        return self.inner.steps()

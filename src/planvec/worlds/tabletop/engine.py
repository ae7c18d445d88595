# pyright: reportAttributeAccessIssue=false
# (mujoco has no stubs)
"""MuJoCo, if it is installed."""

from planvec.errors import InputError

try:
    import mujoco
except ModuleNotFoundError as error:
    raise InputError("the tabletop world needs MuJoCo: pip install 'planvec[tabletop]'") from error

# A simulation that diverges is told by its result; MuJoCo would also write a file into the working folder.
if mujoco.get_mju_user_warning() is None:
    mujoco.set_mju_user_warning(lambda message: None)

__all__ = ["mujoco"]

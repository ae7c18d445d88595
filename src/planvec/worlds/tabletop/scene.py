"""The scene as MuJoCo's XML: table, arm, cubes, box and lid, sized by geometry.py.

What touches what: objects touch each other, the table and the fingers; the fingers touch nothing but objects, and the
rest of the arm nothing at all. The walls are planes, so that nothing is ever thrown over them.

What the physics' settings are for:
- Things at rest sleep, which makes a step several times faster.
- A high impratio keeps what leans on something from creeping.
- The integrator is Euler's. An implicit one damps the arm after the contacts have been solved, so that whatever is
  held slips; explicit damping in turn needs joints with some armature to be stable.
"""

from planvec.worlds.tabletop.geometry import (
    BASE,
    BOX_FLOOR,
    BOX_HEIGHT,
    BOX_INNER,
    BOX_WALL,
    CORNERS,
    CUBE,
    CUBES,
    FINGER,
    FINGER_TRAVEL,
    HAND,
    HANDLE,
    LID,
    LINK,
    SHOULDER,
    TABLE,
)
from planvec.worlds.tabletop.motion import STEP

COLOURS = {"red": ".86 .20 .18", "blue": ".17 .42 .84", "green": ".20 .64 .33", "white": ".97 .97 .95"}
FINGER_LENGTH = 0.055  # from the grip up to the palm
PALM = 0.014  # half its height
RIM = 0.005  # half the thickness and half the height of the rim that shows where the walls are
MARK = CUBE + 0.008  # half the side of the mark in a cube's corner
SURFACE = 'friction="1 .01 .0001" solref=".008 1" condim="3"'


def scene() -> str:
    """The whole scene. The objects' joints come first, in the order of geometry.OBJECTS, and the arm's last."""
    return f"""
<mujoco model="tabletop">
  <compiler angle="radian"/>
  <option timestep="{STEP}" integrator="Euler" cone="pyramidal" impratio="10" iterations="20" ls_iterations="10">
    <flag sleep="enable" autoreset="disable"/>
  </option>
{_LOOKS}
{_DEFAULTS}
  <worldbody>
    <light directional="true" dir=".35 .45 -1" diffuse=".42 .41 .39" specular=".25 .25 .25"/>
    <light directional="true" dir="-.7 .3 -.8" diffuse=".18 .19 .22" specular=".1 .1 .1"/>
    <body name="middle" pos="-.045 .13 .16"/>
    <camera name="front" pos=".27 -.92 .66" mode="targetbody" target="middle" fovy="43"/>
    <camera name="above" pos="0 0 1" xyaxes="1 0 0 0 1 0" fovy="26"/>
{_table()}
{"".join(_cube(name) for name in CUBES)}
{_box()}
{_lid()}
{_arm()}
  </worldbody>
{_ACTUATORS}
</mujoco>"""


_LOOKS = """
  <visual>
    <global offwidth="1920" offheight="1440"/>
    <headlight ambient=".38 .38 .38" diffuse=".24 .24 .24" specular="0 0 0"/>
    <quality offsamples="4"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".97 .97 .98" rgb2=".78 .82 .87" width="64" height="384"/>
    <material name="wood" rgba=".79 .65 .49 1" specular=".15" shininess=".3"/>
    <material name="mat" rgba=".40 .45 .48 1" specular=".05"/>
    <material name="rim" rgba=".52 .38 .27 1" specular=".1"/>
    <material name="box" rgba=".50 .40 .62 1" specular=".15"/>
    <material name="lid" rgba=".62 .52 .74 1" specular=".15"/>
    <material name="metal" rgba=".80 .82 .85 1" specular=".5" shininess=".6"/>
    <material name="dark" rgba=".23 .25 .29 1" specular=".3" shininess=".4"/>
    <material name="joint" rgba=".95 .55 .15 1" specular=".4" shininess=".5"/>
  </asset>"""

_DEFAULTS = f"""
  <default>
    <default class="object">
      <geom type="box" contype="1" conaffinity="3" {SURFACE}/>
    </default>
    <default class="wall">
      <geom type="plane" size="1 1 1" contype="1" conaffinity="1" rgba="0 0 0 0" {SURFACE}/>
    </default>
    <default class="seen">
      <geom type="box" contype="0" conaffinity="0"/>
    </default>
    <default class="arm">
      <joint armature=".15"/>
      <geom type="capsule" contype="0" conaffinity="0"/>
      <default class="wrist">
        <joint armature=".05"/>
      </default>
      <default class="finger">
        <joint type="slide" range="0 {FINGER_TRAVEL}" armature=".05"/>
        <geom type="box" contype="2" conaffinity="0" friction="1.5 .01 .0001" solref=".008 1" condim="3"/>
      </default>
    </default>
  </default>"""

_ACTUATORS = """
  <actuator>
    <position joint="yaw" kp="2500" kv="50"/>
    <position joint="shoulder" kp="2500" kv="50"/>
    <position joint="elbow" kp="2500" kv="45"/>
    <position joint="pitch" kp="400" kv="8"/>
    <position joint="roll" kp="200" kv="5"/>
    <position joint="left" kp="400" kv="10" forcerange="-12 12"/>
    <position joint="right" kp="400" kv="10" forcerange="-12 12"/>
  </actuator>"""


def _table() -> str:
    """The ground and the walls, and what is seen of them."""
    x, y = TABLE
    rim_x = x + RIM
    rim_y = y + RIM
    marks = (
        f'<geom class="seen" size="{MARK} {MARK} .0004" pos="{at[0]} {at[1]} .0002" rgba="{COLOURS[name]} .45"/>'
        for name, at in CORNERS.items()
    )
    return f"""
    <geom class="wall"/>
    <geom class="wall" pos="{-x} 0 0" zaxis="1 0 0"/>
    <geom class="wall" pos="{x} 0 0" zaxis="-1 0 0"/>
    <geom class="wall" pos="0 {-y} 0" zaxis="0 1 0"/>
    <geom class="wall" pos="0 {y} 0" zaxis="0 -1 0"/>
    <geom class="seen" material="wood" size=".33 .385 .02" pos="0 .145 -.0205"/>
    <geom class="seen" material="mat" size="{x} {y} .0005" pos="0 0 -.0005"/>
    <geom class="seen" material="rim" size="{RIM} {rim_y + RIM} {RIM}" pos="{-rim_x} 0 {RIM}"/>
    <geom class="seen" material="rim" size="{RIM} {rim_y + RIM} {RIM}" pos="{rim_x} 0 {RIM}"/>
    <geom class="seen" material="rim" size="{x} {RIM} {RIM}" pos="0 {-rim_y} {RIM}"/>
    <geom class="seen" material="rim" size="{x} {RIM} {RIM}" pos="0 {rim_y} {RIM}"/>
    {"".join(marks)}"""


def _cube(name: str) -> str:
    return f"""
    <body name="{name}">
      <freejoint name="{name}"/>
      <geom class="object" size="{CUBE} {CUBE} {CUBE}" mass=".06" rgba="{COLOURS[name]} 1"/>
    </body>"""


def _box() -> str:
    """A floor and four walls; the box's position is the middle of its foot."""
    side = BOX_INNER + BOX_WALL
    outer = BOX_INNER + 2 * BOX_WALL
    middle = BOX_HEIGHT / 2
    return f"""
    <body name="box">
      <freejoint name="box"/>
      <geom class="object" material="box" size="{outer} {outer} {BOX_FLOOR}" pos="0 0 {BOX_FLOOR}" mass=".32"/>
      <geom class="object" material="box" size="{BOX_WALL} {outer} {middle}" pos="{-side} 0 {middle}" mass=".12"/>
      <geom class="object" material="box" size="{BOX_WALL} {outer} {middle}" pos="{side} 0 {middle}" mass=".12"/>
      <geom class="object" material="box" size="{BOX_INNER} {BOX_WALL} {middle}" pos="0 {-side} {middle}" mass=".12"/>
      <geom class="object" material="box" size="{BOX_INNER} {BOX_WALL} {middle}" pos="0 {side} {middle}" mass=".12"/>
    </body>"""


def _lid() -> str:
    """A plate and a handle; no lip, which would jam."""
    return f"""
    <body name="lid">
      <freejoint name="lid"/>
      <geom class="object" material="lid" size="{LID[0]} {LID[1]} {LID[2]}" mass=".10"/>
      <geom class="object" material="dark" size="{HANDLE[0]} {HANDLE[1]} {HANDLE[2]}"
        pos="0 0 {LID[2] + HANDLE[2]}" mass=".03"/>
    </body>"""


def _arm() -> str:
    """Base, two links, a hand that hangs from the wrist, and two fingers that close along the table's x axis."""
    column = SHOULDER / 2 - 0.02
    palm = FINGER_LENGTH + PALM - HAND
    return f"""
    <body name="base" pos="{BASE[0]} {BASE[1]} 0" childclass="arm">
      <geom type="cylinder" material="dark" size=".07 .012" pos="0 0 .012"/>
      <geom type="cylinder" material="metal" size=".045 {column}" pos="0 0 {column}"/>
      <body name="turret" pos="0 0 {SHOULDER}" gravcomp="1">
        <joint name="yaw" axis="0 0 1"/>
        <geom type="cylinder" material="joint" size=".046 .036" zaxis="0 1 0" mass=".5"/>
        <body name="upper" gravcomp="1">
          <joint name="shoulder" axis="0 -1 0"/>
          <geom material="metal" size=".026" fromto="0 0 0 {LINK} 0 0" mass=".8"/>
          <body name="fore" pos="{LINK} 0 0" gravcomp="1">
            <joint name="elbow" axis="0 -1 0"/>
            <geom type="cylinder" material="joint" size=".035 .031" zaxis="0 1 0" mass=".2"/>
            <geom material="metal" size=".021" fromto="0 0 0 {LINK} 0 0" mass=".5"/>
            <body name="wrist" pos="{LINK} 0 0" gravcomp="1">
              <joint name="pitch" class="wrist" axis="0 -1 0"/>
              <geom type="cylinder" material="joint" size=".026 .026" zaxis="0 1 0" mass=".1"/>
              <body name="hand" gravcomp="1">
                <joint name="roll" class="wrist" axis="0 0 1"/>
                <geom type="cylinder" material="dark" size=".016 .035" pos="0 0 -.035" mass=".1"/>
                <geom type="box" material="dark" size=".042 .015 {PALM}" pos="0 0 {palm}" mass=".1"/>
                <site name="grip" pos="0 0 {-HAND}" rgba="0 0 0 0"/>
                {_finger("left", -1)}
                {_finger("right", 1)}
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>"""


def _finger(name: str, side: int) -> str:
    """Its joint is the distance from the grip to its inner face."""
    thickness, width, below = FINGER
    height = (FINGER_LENGTH + below) / 2
    return f"""
                <body name="{name}" pos="0 0 {-HAND}" gravcomp="1" childclass="finger">
                  <joint name="{name}" axis="{side} 0 0"/>
                  <geom material="metal" size="{thickness} {width} {height}"
                    pos="{side * thickness} 0 {height - below}" mass=".04"/>
                </body>"""

"""The table and what stands on it: names and sizes, in metres. The table's top is z = 0, its middle the origin."""

CUBES = ("red", "blue", "green", "white")
OBJECTS = (*CUBES, "box", "lid")  # in this order their positions are observed: x, y, z each

TABLE = (0.24, 0.18)  # half its sides, to the inner faces of the walls around it
BASE = (0.0, 0.45)  # where the arm stands
CORNERS = {"red": (-0.20, -0.14), "blue": (0.20, -0.14), "green": (-0.20, 0.14), "white": (0.20, 0.14)}

CUBE = 0.02  # half a side
BOX_INNER = 0.046  # half its width, inside
BOX_WALL = 0.004  # half a wall's thickness
BOX_FLOOR = 0.003  # half its floor's thickness
BOX_HEIGHT = 0.05
LID = (0.054, 0.054, 0.004)  # half the plate's sides
HANDLE = (0.012, 0.014, 0.016)  # half the handle's sides; it stands on the plate
GRIPPER = 0.03  # how far each finger opens from the middle

SHOULDER = 0.20  # the shoulder's height
LINK = 0.36  # from shoulder to elbow, and from elbow to wrist
HAND = 0.14  # from the wrist down to the grip, the point between the fingers' pads
FINGER = (0.0025, 0.009, 0.008)  # half a finger's thickness and width, and how far it reaches below the grip
FINGER_TRAVEL = 0.034  # how far a finger can slide from the middle

# An object's position is the middle of a cube, the middle of the lid's plate, and the middle of the box's foot.

// Pictures of a world on a canvas: cells put together from a sheet of sprites, or ready pictures.

const [GROUND, ALONE, UNDERFOOT, IN_HAND, AGENT] = [0, 1, 2, 3, 4]; // rows of the sheet

export class Painter {
  static async of(canvas) {
    const painter = new Painter();
    painter.kind = canvas.kind;
    Object.assign(painter, canvas);
    if (canvas.kind === "cells") painter.sheet = await load(canvas.sheet);
    return painter;
  }

  /** Draw a picture; the canvas takes its shape. Returns what is in hand, where one can tell. */
  async draw(canvas, picture, ringed = []) {
    if (this.kind === "cells") return this.drawCells(canvas, picture, ringed);
    const image = await load(picture);
    fit(canvas, image.naturalHeight / image.naturalWidth);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return null;
  }

  /** The cells whose content differs, where one can tell. */
  changes(first, last) {
    if (this.kind !== "cells") return [];
    const [before, after] = [decode(first), decode(last)];
    return [...Array(this.size * this.size).keys()].filter((cell) => before[cell] !== after[cell]);
  }

  drawCells(canvas, picture, ringed) {
    const bytes = decode(picture);
    const cells = this.size * this.size;
    const [agent, held] = [bytes[cells], bytes[cells + 1]];
    fit(canvas, 1);
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    const edge = (n) => Math.round((n * canvas.width) / this.size);
    for (let cell = 0; cell < cells; cell++) {
      const [row, column] = [Math.floor(cell / this.size), cell % this.size];
      const place = [edge(column), edge(row), edge(column + 1) - edge(column), edge(row + 1) - edge(row)];
      const put = (sheetRow, sheetColumn) =>
        pen.drawImage(this.sheet, sheetColumn * this.cell, sheetRow * this.cell, this.cell, this.cell, ...place);
      put(GROUND, this.ground[cell]);
      if (bytes[cell]) put(cell === agent ? UNDERFOOT : ALONE, bytes[cell]);
      if (cell !== agent) continue;
      put(AGENT, 0);
      if (held) put(IN_HAND, held);
    }
    const side = canvas.width / this.size;
    pen.lineWidth = Math.max(2, side / 7);
    pen.strokeStyle = "#fff3a8";
    for (const cell of ringed) {
      pen.beginPath();
      pen.arc((cell % this.size + 0.5) * side, (Math.floor(cell / this.size) + 0.5) * side, 0.72 * side, 0, 7);
      pen.stroke();
    }
    return this.things[held];
  }
}

function decode(picture) {
  return Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
}

/** Whether pictures are so much wider than high that two of them go below each other. */
export function isWide({ width, height }) {
  return width > 1.5 * height;
}

/** As many pixels as the screen has there. */
function fit(canvas, ratio) {
  const width = Math.max(60, Math.round((canvas.clientWidth || 120) * Math.min(devicePixelRatio || 1, 2)));
  const height = Math.round(width * ratio);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
}

function load(address) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(image);
    image.onerror = reject;
    image.src = address;
  });
}

// The connection: questions with answers, and what the server tells unasked.

const GONE = "The playground's server does not answer. Start planvec play again, at this address; this page reconnects "
  + "by itself, with your plan and your demonstrations.";

export class Socket {
  /** `opened` is called whenever there is a connection, `told` with each unasked message, `lost` with a reason. */
  constructor({ opened, told, lost }) {
    Object.assign(this, { opened, told, lost, number: 0, waiting: new Map(), wait: 500 });
    this.connect();
  }

  connect() {
    this.socket = new WebSocket(`ws://${location.host}/socket`);
    this.socket.onopen = () => {
      this.wait = 500;
      this.opened();
    };
    this.socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      const answer = this.waiting.get(message.number);
      if (!answer) return this.told(message);
      this.waiting.delete(message.number);
      answer(message);
    };
    this.socket.onclose = ({ code, reason }) => {
      this.waiting.clear();
      const final = code === 1008 || code === 1013;
      this.lost(reason || GONE);
      if (final) return;
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(2 * this.wait, 8000);
    };
  }

  /** Send a message that has no answer. */
  tell(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** Send a message; the promise is its answer. After a lost connection it never comes: everything begins anew. */
  ask(message) {
    this.number += 1;
    const answer = new Promise((resolve) => this.waiting.set(this.number, resolve));
    this.tell({ ...message, number: this.number });
    return answer;
  }
}

// The text form of gRPC-Web bodies: base64 in pieces of any size, each of which may end in padding of its own.

const GROUP = 4;
const NO_BYTES = Buffer.alloc(0);

/** Reads a body; what is not yet a group of four characters waits. */
export class Base64Reader {
  #rest = '';

  /** @returns undefined for what is no base64; nothing else can be read then. */
  read(bytes: Buffer): Buffer | undefined {
    const text = this.#rest + bytes.toString('latin1');
    const whole = text.length - (text.length % GROUP);
    this.#rest = text.slice(whole);
    const pieces: Buffer[] = [];
    for (const piece of text.slice(0, whole).match(/[^=]+=*|=+/g) ?? []) {
      if (piece.length % GROUP !== 0 || !/^[A-Za-z0-9+/]{2,}={0,2}$/.test(piece)) return undefined;
      pieces.push(Buffer.from(piece, 'base64'));
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  /** It ends with a whole group. */
  get isWhole(): boolean {
    return this.#rest === '';
  }
}

/** Writes a body. Up to two bytes wait for the third of their group, unless somebody waits for them. */
export class Base64Writer {
  #rest: Buffer = NO_BYTES;

  /** @param isAll nothing of it may wait: it ends in padding if need be. */
  write(bytes: Buffer, isAll: boolean): Buffer {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const end = isAll ? all.length : all.length - (all.length % 3);
    this.#rest = Buffer.from(all.subarray(end));
    return Buffer.from(all.toString('base64', 0, end), 'latin1');
  }
}

// Prefixes of paths by their characters, so that all that a path begins with are found in one walk along it, however many
// there are. A node stands for the characters that lead to it; an edge may hold several.

export interface TrieNode<T> {
  /** Those of the edge that leads here. */
  text: string;
  values: T[];
  /** By the first character of their edge; null for none. */
  children: Map<number, TrieNode<T>> | null;
}

export class PrefixTrie<T> {
  readonly #root: TrieNode<T> = newNode('');

  add(prefix: string, value: T): void {
    let node = this.#root;
    let at = 0;
    while (at < prefix.length) {
      const child = node.children?.get(prefix.charCodeAt(at));
      if (child === undefined) {
        const leaf = newNode<T>(prefix.slice(at));
        adopt(node, leaf);
        node = leaf;
        break;
      }
      const shared = sharedLength(child.text, prefix, at);
      node = shared === child.text.length ? child : split(node, child, shared);
      at += shared;
    }
    node.values.push(value);
  }

  /** Shows the values of every prefix of the path, the shortest first. @param length of the prefix. */
  walk(path: string, visit: (values: readonly T[], length: number) => void): void {
    let node = this.#root;
    let at = 0;
    for (;;) {
      if (node.values.length > 0) visit(node.values, at);
      if (at === path.length || node.children === null) return;
      const child = node.children.get(path.charCodeAt(at));
      if (child === undefined || !path.startsWith(child.text, at)) return;
      at += child.text.length;
      node = child;
    }
  }
}

function newNode<T>(text: string): TrieNode<T> {
  return { text, values: [], children: null };
}

function adopt<T>(parent: TrieNode<T>, child: TrieNode<T>): void {
  parent.children ??= new Map();
  parent.children.set(child.text.charCodeAt(0), child);
}

/** Puts a node of its own into the middle of an edge. */
function split<T>(parent: TrieNode<T>, child: TrieNode<T>, length: number): TrieNode<T> {
  const middle = newNode<T>(child.text.slice(0, length));
  adopt(parent, middle);
  child.text = child.text.slice(length);
  adopt(middle, child);
  return middle;
}

function sharedLength(text: string, prefix: string, at: number): number {
  const end = Math.min(text.length, prefix.length - at);
  let length = 1;
  while (length < end && text.charCodeAt(length) === prefix.charCodeAt(at + length)) length += 1;
  return length;
}

// Elements without markup: whatever a stat, cluster or header is called, it comes in as text.

export type Child = Node | string | number | false | null | undefined;
type Attributes = Readonly<Record<string, string | number | boolean | ((event: Event) => void) | undefined>>;

const SVG = 'http://www.w3.org/2000/svg';

/** Functions become listeners of the event that their key names. */
function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) {
    if (child instanceof Node) element.append(child);
    else if (child !== false && child !== null && child !== undefined) element.append(String(child));
  }
  return element;
}

export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): SVGElement {
  return fill(document.createElementNS(SVG, tag) as SVGElement, attributes, children);
}

/** Writes only what is new: a text that stays is not read out again, and costs no layout. */
export function setText(element: Element, text: string | number): void {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function setAttribute(element: Element, name: string, value: string | number | null): void {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** What stands for one item of a list that is brought up to date again and again. */
export interface Row<Item> {
  readonly elements: readonly HTMLElement[];
  update(item: Item): void;
}

/** Keeps the rows of items that stay, with all that a reader has opened or focused in them. */
export class Rows<Item> {
  readonly #parent: HTMLElement;
  readonly #key: (item: Item) => string;
  readonly #create: (item: Item) => Row<Item>;
  #rows = new Map<string, Row<Item>>();

  constructor(parent: HTMLElement, key: (item: Item) => string, create: (item: Item) => Row<Item>) {
    this.#parent = parent;
    this.#key = key;
    this.#create = create;
  }

  update(items: readonly Item[]): void {
    const former = this.#rows;
    this.#rows = new Map();
    let at: Element | null = this.#parent.firstElementChild;
    for (const item of items) {
      const key = this.#key(item);
      const row = former.get(key) ?? this.#create(item);
      former.delete(key);
      this.#rows.set(key, row);
      for (const element of row.elements) {
        if (element === at) at = at.nextElementSibling;
        else this.#place(element, at);
      }
      row.update(item);
    }
    for (const { elements } of former.values()) for (const element of elements) element.remove();
  }

  /** One that is there already moves with its focus, where the browser can do that. */
  #place(element: HTMLElement, before: Element | null): void {
    if (element.parentElement === this.#parent && 'moveBefore' in this.#parent)
      this.#parent.moveBefore(element, before);
    else this.#parent.insertBefore(element, before);
  }

  /** Of the items that are shown. */
  get(key: string): Row<Item> | undefined {
    return this.#rows.get(key);
  }
}

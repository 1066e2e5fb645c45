// From a field path back to the place where an operator wrote it. Rules and cross-field checks see only
// messages; with this they can still point at file, line and column. Nothing is recorded while reading: the
// value trees are kept, and a path is walked only when a fault asks for it.
// A document is one source, or two merged ones (--config-yaml over --config-path).

import type { ConfigFault, FaultSeverity } from '../fault.ts';
import { formatPath, type PathSegment, parsePath } from './field-path.ts';
import type { ValueNode } from './node.ts';
import type { SourcePlaces } from './source-text.ts';
import { walkTree } from './tree-walk.ts';

/** One source. A binary one has no tree, so only its name can be given. */
export interface DocumentLayer {
  readonly source: SourcePlaces;
  readonly root: ValueNode | undefined;
}

/** Lists that got items from both layers: path of the list → how many came from the lower layer. */
export type AppendedLists = ReadonlyMap<string, number>;

export interface SourcePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

interface Place {
  readonly layer: DocumentLayer;
  /** -1 when the layer has no tree. */
  readonly offset: number;
  /** Segments of the path that the layer really holds. */
  readonly found: number;
  /** The path as it is spelt in the source, `config` where the message says `typed_config`. */
  readonly written: readonly PathSegment[];
}

export class ConfigDocument {
  readonly #lower: DocumentLayer;
  readonly #upper: DocumentLayer | undefined;
  readonly #appended: AppendedLists;

  constructor(lower: DocumentLayer, upper?: DocumentLayer, appended: AppendedLists = new Map()) {
    this.#lower = lower;
    this.#upper = upper;
    this.#appended = appended;
  }

  /** Where `path` was written; the nearest field around it when it was not written at all. */
  positionOf(path: string): SourcePosition {
    return positionAt(this.#find(path));
  }

  /** A fault at `path` with its position. The path is shown as the operator spelt it. */
  fault(path: string, message: string, severity: FaultSeverity = 'error'): ConfigFault {
    const place = this.#find(path);
    return { path: formatPath(place.written), message, severity, ...positionAt(place) };
  }

  #find(path: string): Place {
    const segments = parsePath(path);
    if (this.#upper === undefined) return findIn(this.#lower, segments);
    const split = this.#splitAtAppendedItem(segments);
    if (split?.layer === this.#upper) return this.#findAppended(segments, split.index, split.lowerCount);
    const lower = findIn(this.#lower, segments);
    if (split !== undefined) return lower;
    const upper = findIn(this.#upper, segments);
    // What both layers hold was replaced by the upper one.
    return upper.found === segments.length || upper.found > lower.found ? upper : lower;
  }

  /** The first list item of the path whose layer is known from its index. */
  #splitAtAppendedItem(segments: readonly PathSegment[]) {
    for (const [index, segment] of segments.entries()) {
      if (typeof segment !== 'number') continue;
      const lowerCount = this.#appended.get(formatPath(segments.slice(0, index)));
      if (lowerCount !== undefined)
        return { index, lowerCount, layer: segment < lowerCount ? this.#lower : this.#upper! };
    }
    return undefined;
  }

  /** Looks an appended item up under its own index, and shows it under the merged one. */
  #findAppended(segments: readonly PathSegment[], index: number, lowerCount: number): Place {
    const merged = segments[index] as number;
    const place = findIn(this.#upper!, segments.with(index, merged - lowerCount));
    return { ...place, written: place.written.with(index, merged) };
  }
}

function findIn(layer: DocumentLayer, segments: readonly PathSegment[]): Place {
  if (layer.root === undefined) return { layer, offset: -1, found: 0, written: segments };
  return { layer, ...walkTree(layer.root, segments) };
}

function positionAt(place: Place): SourcePosition {
  return positionIn(place.layer.source, place.offset);
}

/** Position of a character; line and column are 0 when the value has no place of its own. */
export function positionIn(source: SourcePlaces, offset: number): SourcePosition {
  if (offset < 0) return { file: source.name, line: 0, column: 0 };
  return { file: source.name, ...source.lineAndColumn(offset) };
}

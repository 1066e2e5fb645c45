// Which of the encodings that a chain of filters can make a client gets (RFC 9110 section 12.5.3). "identity" is always
// there.

/** A compressor that could make something of the response at hand. */
export interface Candidate {
  /** As heads name it. */
  readonly encoding: string;
  readonly isChosenFirst: boolean;
}

export interface Choice<Offered extends Candidate> {
  /** Null for none. */
  readonly chosen: Offered | null;
  /** What in the header has led there. */
  readonly by: 'encoding' | 'identity' | 'wildcard' | 'nothing';
}

interface Wish {
  readonly name: string;
  readonly weight: number;
}

/** RFC 9110 section 12.4.2, and no more digits than a header can hold. */
const WEIGHT = /^[ \t]*q[ \t]*=[ \t]*(\d+(?:\.\d*)?|\.\d+)[ \t]*$/i;
const IDENTITY = 'identity';
const WILDCARD = '*';
/** RFC 9110 section 8.4.1.3. */
const GZIP_ALIAS = 'x-gzip';

/**
 * The highest weight wins; among equals the encoding that a filter wants to be chosen first, the last filter that does, or the
 * one that the client has named first. What the wildcard stands for is the first in the chain that the client has not named.
 * @param offered in the order of the chain.
 */
export function chooseEncoding<Offered extends Candidate>(
  header: string,
  offered: readonly Offered[],
): Choice<Offered> {
  const wishes = wishesOf(header);
  const refused = new Set(wishes.filter(({ weight }) => weight === 0).map(({ name }) => name));
  const open = offered.filter(({ encoding }) => !refused.has(encoding));
  let best: Wish | null = null;
  let bestOffer: Offered | null = null;
  for (const wish of wishes) {
    const { name, weight } = wish;
    if (weight === 0) continue;
    const offer = name === WILDCARD ? wildcardOffer(open, wishes) : offerOf(open, name);
    if (offer === null && name !== IDENTITY) continue;
    const isBetter = best === null || weight > best.weight;
    const isPreferred = weight === best?.weight && offer !== null && isBefore(open, offer, bestOffer);
    if (!isBetter && !isPreferred) continue;
    best = wish;
    bestOffer = offer;
  }
  if (best === null) return { chosen: null, by: 'nothing' };
  if (best.name === IDENTITY) return { chosen: null, by: 'identity' };
  return { chosen: bestOffer, by: best.name === WILDCARD ? 'wildcard' : 'encoding' };
}

function wishesOf(header: string): readonly Wish[] {
  const wishes: Wish[] = [];
  for (const element of header.split(',')) {
    const [coding = '', ...parameters] = element.split(';');
    const name = coding.trim().toLowerCase();
    if (name === '') continue;
    const weight = weightOf(parameters);
    // A weight that nobody can read says nothing.
    if (weight !== undefined) wishes.push({ name: name === GZIP_ALIAS ? 'gzip' : name, weight });
  }
  return wishes;
}

function weightOf(parameters: readonly string[]): number | undefined {
  const text = parameters.find((parameter) => /^[ \t]*q[ \t]*=/i.test(parameter));
  if (text === undefined) return 1;
  const digits = WEIGHT.exec(text)?.[1];
  return digits === undefined ? undefined : Math.min(1, Number(digits));
}

function offerOf<Offered extends Candidate>(open: readonly Offered[], name: string): Offered | null {
  return open.find(({ encoding }) => encoding === name) ?? null;
}

function wildcardOffer<Offered extends Candidate>(open: readonly Offered[], wishes: readonly Wish[]): Offered | null {
  const unnamed = open.filter(({ encoding }) => !wishes.some(({ name }) => name === encoding));
  return unnamed.findLast(({ isChosenFirst }) => isChosenFirst) ?? unnamed[0] ?? null;
}

function isBefore<Offered extends Candidate>(open: readonly Offered[], offer: Offered, other: Offered | null): boolean {
  return offer.isChosenFirst && (!other?.isChosenFirst || open.indexOf(offer) > open.indexOf(other));
}

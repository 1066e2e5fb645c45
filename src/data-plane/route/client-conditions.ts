// Tests of what a client has brought beside its head's fields, and of what filters have made of it, as conditions of
// routes. Made once per snapshot.

import { utf8Bytes } from '../../base/byte-text.ts';
import { compileMetadataMatch } from '../../base/metadata-match.ts';
import { compileByteMatch } from '../../base/string-match.ts';
import type { ClientCertificateMatch, CookieMatch, FilterStateMatch, MetadataMatch } from '../../snapshot/index.ts';
import { AddressRanges } from '../matching/address-ranges.ts';
import type { RequestTest } from './header-matcher.ts';
import { findRequestCookie } from './request-cookie.ts';

export function compileCookieMatch({ name, test, isInverted }: CookieMatch): RequestTest {
  const passes = compileByteMatch(test);
  return ({ head }) => {
    const value = findRequestCookie(head, name);
    return (value !== undefined && passes(value)) !== isInverted;
  };
}

/** A connection without TLS has presented nothing, and nothing of it is validated. */
export function compileCertificateMatch({ isPresented, isValidated }: ClientCertificateMatch): RequestTest {
  return ({ sender }) => {
    const tls = sender?.downstream.tls ?? null;
    const hasCertificate = tls !== null && tls.peer !== null;
    if (isPresented !== undefined && hasCertificate !== isPresented) return false;
    return isValidated === undefined || (hasCertificate && tls.isPeerVerified) === isValidated;
  };
}

export function compileMetadataCondition(match: MetadataMatch): RequestTest {
  const holds = compileMetadataMatch(match);
  return ({ sender }) => holds(sender?.dynamicMetadata);
}

export function compileStateCondition(match: FilterStateMatch): RequestTest {
  const holds = compileStateMatch(match);
  return ({ sender }) => sender !== null && holds(sender);
}

/** Of what filters have put into the state of a request or connection; what nobody has does not match. */
export function compileStateMatch({
  key,
  test,
}: FilterStateMatch): (subject: { state(key: string): string | undefined }) => boolean {
  const passes = compileStateTest(test);
  return (subject) => {
    const text = subject.state(key);
    return text !== undefined && passes(text);
  };
}

function compileStateTest(test: FilterStateMatch['test']): (text: string) => boolean {
  if (test.kind === 'ranges') {
    const ranges = new AddressRanges([test.ranges]);
    return (text) => ranges.holding(text).length > 0;
  }
  const passes = compileByteMatch(test);
  return (text) => passes(utf8Bytes(text));
}

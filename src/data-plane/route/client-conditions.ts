// Tests of what a client has brought beside its head's fields, and of what filters have made of it, as conditions of
// routes. Made once per snapshot.

import { compileMetadataMatch } from '../../base/metadata-match.ts';
import { compileByteMatch } from '../../base/string-match.ts';
import type { ClientCertificateMatch, CookieMatch, MetadataMatch } from '../../snapshot/index.ts';
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

// Secret messages that come by discovery, held against what they are wanted for. They are kept as messages: what they are made
// into is the context's, whose files they may name.

import type { SecretReference } from '../../../snapshot/index.ts';
import { fieldPath } from '../../source/field-path.ts';
import type { Conversion } from '../conversion.ts';
import type { Secret } from '../messages.ts';
import { convertCertificate } from './certificate.ts';
import { kindFault, secretPart } from './secrets.ts';
import { convertTicketKeys } from './ticket-keys.ts';
import { convertValidation } from './validation.ts';

/** What a secret is wanted as. */
export type SecretUse = Pick<SecretReference, 'kind' | 'isOverlay'>;

/** @param at path of the message. @param conversion its trail gets the files that were read. */
export function checkSecret(message: Secret, at: string, uses: Iterable<SecretUse>, conversion: Conversion): void {
  for (const use of uses) checkUse(message, at, use, conversion);
}

function checkUse(message: Secret, at: string, { kind, isOverlay }: SecretUse, conversion: Conversion): void {
  const partAt = fieldPath(at, kind);
  switch (kind) {
    case 'tls_certificate': {
      const part = secretPart(message, kind);
      if (part !== undefined) return void convertCertificate(part, partAt, conversion);
      break;
    }
    case 'validation_context': {
      const part = secretPart(message, kind);
      if (part !== undefined) return void convertValidation(part, partAt, conversion, isOverlay);
      break;
    }
    case 'session_ticket_keys': {
      const part = secretPart(message, kind);
      if (part !== undefined) return void convertTicketKeys(part, partAt, conversion);
      break;
    }
  }
  conversion.faults.error(at, kindFault(message, kind));
}

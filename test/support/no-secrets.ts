// Of listeners and clusters whose secrets stand in their configurations: nobody asks for others.

import type { SecretLeases } from '../../src/control-plane/secrets/secrets.ts';

export const NO_SECRETS_LEASED: SecretLeases = {
  lease: ({ name }) => {
    throw new Error(`nobody was to ask for secret ${name}`);
  },
};

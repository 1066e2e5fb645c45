// The echo filter takes no settings.

import { type NetworkFilterManifest, rejected } from '../../../config/index.ts';

export const ECHO: NetworkFilterManifest = {
  isTerminal: true,
  support: { 'proxy.extensions.filters.network.echo.v3.Echo': { otherwise: rejected(), fields: {} } },
  convert: () => ({ name: 'filters.network.echo', settings: null }),
};

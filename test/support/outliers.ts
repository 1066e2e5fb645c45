// Settings of an outlier detector for tests: the defaults, as the configuration gives them.

import type { OutlierSettings } from '../../src/snapshot/index.ts';
import { clusterNamed, clusterSettings, type JsonObject } from './bootstrap.ts';

/** @param fields of the message. */
export function outlierSettings(fields: JsonObject = {}): OutlierSettings {
  const { outlierDetection } = clusterSettings(clusterNamed('web', { outlier_detection: fields }));
  return outlierDetection!;
}

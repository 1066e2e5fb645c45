/** Whether a whole number of 0 or more is a prime; takes time with its square root. */
export function isPrime(value: number): boolean {
  if (value % 2 === 0) return value === 2;
  for (let divisor = 3; divisor * divisor <= value; divisor += 2) if (value % divisor === 0) return false;
  return value > 1;
}

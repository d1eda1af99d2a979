// The Authorization header of what a reader types. Nothing here keeps it.

// A token as it is pasted: perhaps with blanks around it, or with the word before it.
export function bearerHeader(token) {
  return `Bearer ${token.trim().replace(/^Bearer\s+/i, "")}`;
}

// User and password in UTF-8, as RFC 7617 allows.
export function basicHeader(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
}

package shell

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// A secret that is shown once waits for the page that shows it in two halves,
// neither of which says anything alone: one with the session, the other in a
// cookie of that page. So a reload shows nothing and does nothing again, and
// no store has ever held the secret.
const (
	onceKey    = "secret_once"
	onceCookie = "dropbell_once"
	onceLife   = time.Minute
)

// SecretFor keeps a secret, and the name of what it belongs to, for the next
// look at the page below path.
func (sh *Shell) SecretFor(w http.ResponseWriter, r *http.Request, path, name, secret string) {
	pad := make([]byte, len(secret))
	_, _ = rand.Read(pad) // never fails
	half := make([]byte, len(secret))
	subtle.XORBytes(half, pad, []byte(secret))
	sh.Sessions.Put(r.Context(), onceKey, base64.RawURLEncoding.EncodeToString(half)+" "+name)
	http.SetCookie(w, sh.onceCookie(path, base64.RawURLEncoding.EncodeToString(pad), int(onceLife/time.Second)))
}

// SecretOnce returns what waits for the page, which then waits no longer.
func (sh *Shell) SecretOnce(w http.ResponseWriter, r *http.Request, path string) (name, secret string) {
	if r.Method == http.MethodHead {
		return "", "" // its answer would not be seen
	}
	text := sh.Sessions.PopString(r.Context(), onceKey)
	if text == "" {
		return "", ""
	}
	http.SetCookie(w, sh.onceCookie(path, "", -1))
	stored, name, _ := strings.Cut(text, " ")
	half, err := base64.RawURLEncoding.DecodeString(stored)
	pad, wrong := base64.RawURLEncoding.DecodeString(cookie(r, onceCookie))
	if err != nil || wrong != nil || len(half) != len(pad) {
		return "", "" // the page comes too late
	}
	subtle.XORBytes(half, half, pad)
	return name, string(half)
}

func (sh *Shell) onceCookie(path, value string, age int) *http.Cookie {
	return &http.Cookie{Name: onceCookie, Value: value, Path: path, MaxAge: age, HttpOnly: true, Secure: Secure(sh.PublicURL), SameSite: http.SameSiteStrictMode}
}

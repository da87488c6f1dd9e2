package shell

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// A secret that is shown once waits for its page in two halves, of which neither reveals anything
// alone: one half in the session, the other half in a cookie of that page. So a reload neither
// shows the secret nor repeats the action, and no store has ever held the secret.
const (
	onceKey    = "secret_once"
	onceCookie = "dropbell_once"
	onceLife   = time.Minute
)

// SecretFor keeps a secret, and the name of its object, for the next request of the page below
// path.
func (sh *Shell) SecretFor(w http.ResponseWriter, r *http.Request, path, name, secret string) {
	pad := make([]byte, len(secret))
	_, _ = rand.Read(pad) // never fails
	half := make([]byte, len(secret))
	subtle.XORBytes(half, pad, []byte(secret))
	sh.Sessions.Put(r.Context(), onceKey, base64.RawURLEncoding.EncodeToString(half)+" "+name)
	http.SetCookie(w, sh.onceCookie(path, base64.RawURLEncoding.EncodeToString(pad), int(onceLife/time.Second)))
}

// SecretOnce returns the secret that waits for the page, and removes it.
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

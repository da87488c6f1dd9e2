package smstest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
)

// The account of the imitations of Alibaba Cloud, Tencent Cloud and Amazon.
const (
	KeyID     = "AKIDEXAMPLE0123456789"
	KeySecret = "secret/EXAMPLE+KEY"
)

// canonical returns the text that the three signature schemes sign: the request's method, path
// and parameters, the signed headers with their names, and the hash of the body. value returns
// the value of a header as the service reads it; nil = the value unchanged.
func canonical(r *http.Request, signed, bodyHash string, value func(name, v string) string) string {
	var pairs []string
	for k, values := range r.URL.Query() {
		for _, v := range values {
			pairs = append(pairs, percent(k)+"="+percent(v))
		}
	}
	sort.Strings(pairs)
	text := r.Method + "\n/\n" + strings.Join(pairs, "&") + "\n"
	for h := range strings.SplitSeq(signed, ";") {
		v := r.Header.Get(h)
		if h == "host" {
			if v = r.Host; v == "" {
				v = r.URL.Host
			}
		}
		if value != nil {
			v = value(h, v)
		}
		text += h + ":" + strings.TrimSpace(v) + "\n"
	}
	return text + "\n" + signed + "\n" + bodyHash
}

// bodyOf returns the body of a request and leaves it as it was.
func bodyOf(r *http.Request) (body []byte) {
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return body
}

// matches reports whether signature is the text's signature with the key.
func matches(signature, key, text string) bool {
	return hmac.Equal([]byte(signature), []byte(hex.EncodeToString(sum(key, text))))
}

func percent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func hexHash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func sum(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// derived is the key that a secret and the parts of a scope make.
func derived(secret string, scope ...string) string {
	for _, part := range scope {
		secret = string(sum(secret, part))
	}
	return secret
}

package aliyun

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// algorithm is the name of Alibaba Cloud's signature, version 3.
const algorithm = "ACS3-HMAC-SHA256"

// emptyBody is the SHA-256 of no bytes.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Sign adds the signature to a request without a body. All x-acs headers except the hash must be
// set.
func Sign(r *http.Request, keyID, secret string) {
	r.Header.Set("x-acs-content-sha256", emptyBody)
	signed := map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-acs-") || name == "content-type" {
			signed[name] = strings.TrimSpace(values[0])
		}
	}
	names := slices.Sorted(maps.Keys(signed))
	var b strings.Builder
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	b.WriteString(r.Method + "\n" + path + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, n := range names {
		b.WriteString(n + ":" + signed[n] + "\n")
	}
	list := strings.Join(names, ";")
	b.WriteString("\n" + list + "\n" + emptyBody)
	hash := sha256.Sum256([]byte(b.String()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(algorithm + "\n" + hex.EncodeToString(hash[:])))
	r.Header.Set("Authorization", algorithm+" Credential="+keyID+",SignedHeaders="+list+",Signature="+hex.EncodeToString(mac.Sum(nil)))
}

// canonicalQuery writes parameters sorted and percent-encoded as RFC 3986 demands.
func canonicalQuery(query url.Values) string {
	return strings.NewReplacer("+", "%20", "%7E", "~").Replace(query.Encode())
}

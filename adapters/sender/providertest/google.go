package providertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// A ServiceAccount is an account at Google with the address that issues its access tokens
// (RFC 7523, section 2.1).
type ServiceAccount struct {
	// Account is the key file, Email the account's name.
	Account []byte
	Email   string
	Key     *rsa.PrivateKey
	// NoTokens makes it issue no access tokens.
	NoTokens atomic.Bool

	scope, address string
	tokens         sync.Map // access tokens that are valid
}

// Make makes the key of the account, whose tokens are issued at the address for the scope.
func (a *ServiceAccount) Make(email, project, scope, address string) (err error) {
	if a.Key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(a.Key)
	if err != nil {
		return err
	}
	a.Email, a.scope, a.address = email, scope, address
	a.Account, err = json.Marshal(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": "0123456789abcdef",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": email, "token_uri": address,
	})
	return err
}

// Issue answers a call for an access token.
func (a *ServiceAccount) Issue(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refused := func(why string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, why)
	}
	if a.NoTokens.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		refused("unsupported grant")
		return
	}
	assertion, err := jwt.Parse([]byte(r.FormValue("assertion")), jwt.WithKey(jwa.RS256(), &a.Key.PublicKey),
		jwt.WithIssuer(a.Email), jwt.WithAudience(a.address))
	if err != nil {
		refused("Invalid JWT Signature.")
		return
	}
	var scope string
	if assertion.Get("scope", &scope) != nil || scope != a.scope {
		refused("Invalid OAuth scope.")
		return
	}
	token := uuid.NewString()
	a.tokens.Store(token, true)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599})
}

// Authorized reports whether the call has an access token that is valid.
func (a *ServiceAccount) Authorized(r *http.Request) bool {
	_, valid := a.tokens.Load(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return valid
}

// Revoke makes every access token invalid.
func (a *ServiceAccount) Revoke() { a.tokens.Clear() }

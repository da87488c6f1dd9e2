package catcher

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
)

// pushMessage is the message that a phone would show.
type pushMessage struct {
	Device string `json:"device"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	URL    string `json:"url,omitempty"`
	Key    string `json:"tag"`
}

// PushVariables returns the environment with which worker sends pushes for phones to the catcher
// at url. The keys are generated for this catcher alone.
func PushVariables(url string) (map[string]string, error) {
	apple, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	google, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	appleKey, err := privateKey(apple)
	if err != nil {
		return nil, err
	}
	googleKey, err := privateKey(google)
	if err != nil {
		return nil, err
	}
	account, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "dropbell-demo", "private_key_id": "demo",
		"private_key": string(googleKey), "client_email": "demo@dropbell.test", "token_uri": url + "/token"})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"APNS_KEY": base64.StdEncoding.EncodeToString(appleKey), "APNS_KEY_ID": "DEMOKEY123", "APNS_TEAM_ID": "DEMOTEAM12",
		"APNS_TOPIC": "test.dropbell.shop", "APNS_URL": url,
		"FCM_SERVICE_ACCOUNT": base64.StdEncoding.EncodeToString(account), "FCM_URL": url,
	}, nil
}

func privateKey(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// receiveAPNs is Apple's side of a push to an iPhone. It takes every provider token.
func (c *Catcher) receiveAPNs(w http.ResponseWriter, r *http.Request) {
	var note struct {
		APS struct {
			Alert struct {
				Title string `json:"title"`
				Body  string `json:"body"`
			} `json:"alert"`
		} `json:"aps"`
		URL string `json:"url"`
		Tag string `json:"tag"`
	}
	if r.ProtoMajor != 2 || !c.decode(w, r, &note) {
		return
	}
	c.takePush(w, pushMessage{"iPhone " + short(r.PathValue("token")), note.APS.Alert.Title, note.APS.Alert.Body, note.URL, note.Tag})
}

// issueToken is Google's address of access tokens. It takes every assertion.
func (c *Catcher) issueToken(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"access_token":"demo","token_type":"Bearer","expires_in":3599}`) // the sender is gone: it will ask again
}

// receiveFCM is Google's side of a push to an Android phone.
func (c *Catcher) receiveFCM(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Message struct {
			Token        string `json:"token"`
			Notification struct {
				Title string `json:"title"`
				Body  string `json:"body"`
			} `json:"notification"`
			Data map[string]string `json:"data"`
		} `json:"message"`
	}
	if !c.decode(w, r, &request) {
		return
	}
	m := request.Message
	if c.takePush(w, pushMessage{"Android " + short(m.Token), m.Notification.Title, m.Notification.Body, m.Data["url"], m.Data["tag"]}) {
		_, _ = io.WriteString(w, `{"name":"projects/dropbell-demo/messages/1"}`) // likewise
	}
}

func (c *Catcher) takePush(w http.ResponseWriter, m pushMessage) bool {
	// The same message goes to each of a user's phones.
	m.Key += " " + m.Device
	if err := c.take(Push, m); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return false
	}
	return true
}

// short is enough of a token to tell phones apart.
func short(token string) string {
	if len(token) > 12 {
		return token[:12] + "…"
	}
	return token
}

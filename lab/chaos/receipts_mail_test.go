package chaos_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

const (
	// mailSecret proves reports of providers that sign with a secret, or not at all.
	mailSecret = "chaos-secret-of-mails"
	sesTopic   = "arn:aws:sns:us-east-1:123456789012:mail"
	// snsHost and bridgeHost have the certificates with which reports are signed.
	snsHost    = "sns.us-east-1.amazonaws.com"
	bridgeHost = "cn-hangzhou-eventbridge.oss-accelerate.aliyuncs.com"
)

// mailReporters are the providers of mail whose reports are read, by their names in
// SMTP_FEEDBACK.
var mailReporters = map[string]func(*testing.T) *mailReporter{
	"postmark": reportingPostmark, "ses": reportingSES, "sendgrid": reportingSendGrid, "mailgun": reportingMailgun, "directmail": reportingDirectMail,
}

// mailReporterOf returns a provider that finds a mail's reference in a header.
func mailReporterOf(name string, key func(head textproto.MIMEHeader) string, env ...string) *mailReporter {
	return &mailReporter{reporter{env: append(env, "SMTP_FEEDBACK="+name), foreignKey: "0123456789abcdef"}, key}
}

// documented returns an example of a provider's documents about a mail.
func documented(t *testing.T, name string, a arrival) string {
	raw, err := os.ReadFile(filepath.Join("..", "..", "adapters", "mailfeedback", "testdata", name))
	if err != nil {
		t.Error(err)
	}
	return strings.NewReplacer("{ref}", a.key, "ada@shop.example", fmt.Sprintf("u%d@example.com", a.user)).Replace(strings.TrimSpace(string(raw)))
}

// posted is a call with the body to the address of the source.
func posted(source, body string) *http.Request {
	return smstest.Posted(publicURL+"/callbacks/"+source, json.RawMessage(body))
}

func reportingPostmark(t *testing.T) *mailReporter {
	m := mailReporterOf("postmark", func(head textproto.MIMEHeader) string { return head.Get("X-PM-Metadata-dropbell") }, "POSTMARK_WEBHOOK_SECRET="+mailSecret)
	m.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		body := documented(t, "postmark_bounce.json", a)
		switch is {
		case feedback.Delivered:
			body = documented(t, "postmark_delivery.json", a)
		case feedback.Complained:
			body = strings.Replace(body, `"RecordType": "Bounce"`, `"RecordType": "SpamComplaint"`, 1)
		case feedback.SoftBounced:
			body = strings.Replace(body, `"HardBounce"`, `"SoftBounce"`, 1)
		}
		password := mailSecret
		if forged {
			password = "a-guess-of-the-secret"
		}
		return posted("postmark?token="+url.QueryEscape(password), body)
	}
	return m
}

// reportingSendGrid signs with ECDSA, and reports lists of events.
func reportingSendGrid(t *testing.T) *mailReporter {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	musttest.OK(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	musttest.OK(t, err)
	m := mailReporterOf("sendgrid", func(head textproto.MIMEHeader) string {
		var api struct {
			Args map[string]string `json:"unique_args"`
		}
		_ = json.Unmarshal([]byte(head.Get("X-SMTPAPI")), &api) // without it the mail has no key
		return api.Args["dropbell"]
	}, "SENDGRID_WEBHOOK_KEY="+base64.StdEncoding.EncodeToString(der))
	places := map[feedback.Status]int{feedback.Delivered: 1, feedback.Bounced: 2, feedback.SoftBounced: 3, feedback.Complained: 6}
	m.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		var events []json.RawMessage
		if err := json.Unmarshal([]byte(documented(t, "sendgrid.json", a)), &events); err != nil {
			t.Error(err)
		}
		body := "[" + string(events[0]) + "," + string(events[places[is]]) + "]" // with an event that is not about delivery
		at := strconv.FormatInt(time.Now().Unix(), 10)
		sum := sha256.Sum256([]byte(at + compact(t, body)))
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Error(err)
		}
		q := posted("sendgrid", body)
		if forged {
			at = strconv.FormatInt(time.Now().Unix()+1, 10)
		}
		q.Header.Set("X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature))
		q.Header.Set("X-Twilio-Email-Event-Webhook-Timestamp", at)
		return q
	}
	return m
}

// compact is the JSON as [posted] sends it.
func compact(t *testing.T, body string) string {
	raw, err := json.Marshal(json.RawMessage(body))
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

// reportingMailgun signs a time and a token.
func reportingMailgun(t *testing.T) *mailReporter {
	m := mailReporterOf("mailgun", func(head textproto.MIMEHeader) string {
		var variables map[string]string
		_ = json.Unmarshal([]byte(head.Get("X-Mailgun-Variables")), &variables) // without it the mail has no key
		return variables["dropbell"]
	}, "MAILGUN_WEBHOOK_KEY="+mailSecret)
	m.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		body := documented(t, "mailgun_failed.json", a)
		switch is {
		case feedback.Delivered:
			body = strings.Replace(body, `"failed"`, `"delivered"`, 1)
		case feedback.Complained:
			body = strings.Replace(body, `"failed"`, `"complained"`, 1)
		case feedback.SoftBounced:
			body = strings.Replace(body, `"permanent"`, `"temporary"`, 1)
		}
		at, token, key := strconv.FormatInt(time.Now().Unix(), 10), uuid.NewString(), mailSecret
		if forged {
			key = "a-guess-of-the-secret"
		}
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(at + token))
		return posted("mailgun", strings.NewReplacer("{timestamp}", at, "{token}", token, "{signature}", hex.EncodeToString(mac.Sum(nil))).Replace(body))
	}
	return m
}

// reportingSES reports by Amazon SNS: events, and complaints as notifications.
func reportingSES(t *testing.T) *mailReporter {
	by := startCallSigner(t)
	m := mailReporterOf("ses", func(head textproto.MIMEHeader) string {
		return strings.TrimPrefix(head.Get("X-SES-MESSAGE-TAGS"), "dropbell=")
	}, append(by.env(), "SES_TOPICS="+sesTopic)...)
	m.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		name := map[feedback.Status]string{feedback.Delivered: "ses_delivery.json", feedback.Complained: "ses_complaint.json"}[is]
		if name == "" {
			name = "ses_bounce.json"
		}
		text := documented(t, name, a)
		if is == feedback.SoftBounced {
			text = strings.Replace(text, `"Permanent"`, `"Transient"`, 1)
		}
		fields := map[string]string{"Message": text, "MessageId": uuid.NewString(), "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "TopicArn": sesTopic, "Type": "Notification"}
		signed := ""
		for _, f := range []string{"Message", "MessageId", "Timestamp", "TopicArn", "Type"} {
			signed += f + "\n" + fields[f] + "\n"
		}
		if forged {
			signed += "of another message"
		}
		fields["SignatureVersion"], fields["Signature"], fields["SigningCertURL"] = "2", by.sign(signed), "https://"+snsHost+"/SimpleNotificationService-0123456789abcdef.pem"
		q := smstest.Posted(publicURL+"/callbacks/ses", fields)
		q.Header.Set("Content-Type", "text/plain; charset=UTF-8")
		return q
	}
	return m
}

// reportingDirectMail reports through EventBridge. In complaints it names a mail by the mail's
// Message-ID.
func reportingDirectMail(t *testing.T) *mailReporter {
	by := startCallSigner(t)
	m := mailReporterOf("directmail", func(head textproto.MIMEHeader) string { return head.Get("X-Notify-Message-ID") }, append(by.env(), "DIRECTMAIL_TOKEN="+mailSecret)...)
	m.report = func(a arrival, is feedback.Status, forged bool) *http.Request {
		name := map[feedback.Status]string{feedback.Delivered: "directmail_succeed.json", feedback.Complained: "directmail_complaint.json"}[is]
		if name == "" {
			name = "directmail_fail.json"
		}
		body := documented(t, name, a)
		if is == feedback.Complained {
			body = strings.Replace(body, "<"+a.key+"@shop.example>", a.call, 1)
		}
		if is == feedback.SoftBounced {
			body = strings.Replace(body, `"status": "2"`, `"status": "4"`, 1)
		}
		q := posted("directmail", body)
		signed := q.URL.String() + "\n"
		for _, h := range [][2]string{{"x-eventbridge-signature-timestamp", strconv.FormatInt(time.Now().UnixMilli(), 10)}, {"x-eventbridge-hash-method", "SHA256"}, {"x-eventbridge-signature-version", "1.0"},
			{"x-eventbridge-signature-url", "https://" + bridgeHost + "/x509_public_certificate_1.pem"}, {"x-eventbridge-signature-token", mailSecret}} {
			q.Header.Set(h[0], h[1])
			signed += h[0] + ": " + h[1] + "\n"
		}
		if forged {
			signed += "of another body"
		}
		q.Header.Set("x-eventbridge-signature-v2", by.sign(signed+compact(t, body)))
		return q
	}
	return m
}

// A callSigner signs calls with a key. Web looks up the key's certificate at the hosts of Amazon
// SNS and EventBridge, through a proxy that leads to this process instead.
type callSigner struct {
	t            *testing.T
	key          *rsa.PrivateKey
	roots, proxy string
}

// startCallSigner returns a signer that ends with the test.
func startCallSigner(t *testing.T) *callSigner {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	musttest.OK(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{snsHost, bridgeHost},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	musttest.OK(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	n := &callSigner{t: t, key: key, roots: filepath.Join(t.TempDir(), "roots.pem")}
	musttest.OK(t, os.WriteFile(n.roots, text, 0o600))
	hosts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	hosts.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	hosts.StartTLS()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.tunnel(w, r, hosts.Listener.Addr()) }))
	n.proxy = proxy.URL
	t.Cleanup(func() {
		proxy.Close()
		hosts.Close()
	})
	return n
}

// env makes a program find the hosts.
func (n *callSigner) env() []string {
	return []string{"HTTPS_PROXY=" + n.proxy, "SSL_CERT_FILE=" + n.roots}
}

// sign returns the signature of a text.
func (n *callSigner) sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, n.key, crypto.SHA256, sum[:])
	if err != nil {
		n.t.Error(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// tunnel connects a client of the proxy with the address.
func (n *callSigner) tunnel(w http.ResponseWriter, r *http.Request, to net.Addr) {
	if host, _, _ := net.SplitHostPort(r.Host); r.Method != http.MethodConnect || host != snsHost && host != bridgeHost {
		n.t.Errorf("a program calls %s %s", r.Method, r.Host)
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	there, err := net.Dial("tcp", to.String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		n.t.Error(err)
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		_, _ = io.Copy(there, buffered)
		_ = there.Close()
	}()
	go func() {
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}()
}

package smtp_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"strconv"
	"testing"

	gomail "github.com/wneessen/go-mail"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// BenchmarkSend compares the sender with the library alone on one connection;
// one operation is one mail.
func BenchmarkSend(b *testing.B) {
	messages := sendertest.Messages(delivery.Email, 50)
	b.Run("library", func(b *testing.B) {
		client := bareClient(b, (&relay{discard: true}).start(b, nil).Addr)
		for i := 0; b.Loop(); i++ {
			m := messages[i%len(messages)]
			mime := gomail.NewMsg()
			musttest.OK(b, mime.From("drops@shop.example"))
			musttest.OK(b, mime.To(m.To.Email))
			mime.Subject(m.Content.Title)
			mime.SetBodyString(gomail.TypeTextPlain, m.Content.Text)
			mime.AddAlternativeString(gomail.TypeTextHTML, m.Content.HTML)
			musttest.OK(b, client.Send(mime))
		}
	})
	b.Run("sender", func(b *testing.B) {
		s := (&relay{discard: true}).start(b, nil).sender(b, nil)
		for i := 0; i < b.N; i += len(messages) {
			s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
		}
	})
	for name, key := range benchKeys(b) {
		b.Run("sender, signed with "+name, func(b *testing.B) {
			s := (&relay{discard: true}).start(b, nil).sender(b, func(c *smtp.Config) {
				c.DKIM = &smtp.DKIM{Domain: "shop.example", Selector: "drop", Key: key}
			})
			b.ResetTimer() // generating a key takes long
			for i := 0; i < b.N; i += len(messages) {
				s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
			}
		})
	}
	b.Run("sender on eight connections", func(b *testing.B) {
		s := (&relay{discard: true}).start(b, nil).sender(b, nil)
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for n := 0; ; n = 0 {
				for n < len(messages) && pb.Next() {
					n++
				}
				s.Send(b.Context(), messages[:n])
				if n < len(messages) {
					return
				}
			}
		})
	})
}

func benchKeys(b *testing.B) map[string]crypto.Signer {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	musttest.OK(b, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	musttest.OK(b, err)
	return map[string]crypto.Signer{"Ed25519": edwards, "RSA of 2048 bits": rivest}
}

func bareClient(b *testing.B, address string) *gomail.Client {
	host, port, err := net.SplitHostPort(address)
	musttest.OK(b, err)
	number, err := strconv.Atoi(port)
	musttest.OK(b, err)
	client, err := gomail.NewClient(host, gomail.WithPort(number), gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithoutNoop())
	musttest.OK(b, err)
	musttest.OK(b, client.DialWithContext(b.Context()))
	b.Cleanup(func() { _ = client.Close() })
	return client
}

package smtp_test

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gomessage "github.com/emersion/go-message/mail"

	"dropbell/adapters/localstack"
	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// A reading is the content that a mail program reads from a mail. The libraries end lines
// differently: here a line ends with \n, and blank space at the end of a text is removed.
type reading struct {
	Subject, From, Sender, Reply, Name, To, Text, HTML string
	Attachments                                        int
	Signature                                          string
}

func (r reading) even() reading {
	for _, s := range []*string{&r.Text, &r.HTML} {
		*s = strings.TrimRight(strings.ReplaceAll(*s, "\r\n", "\n"), " \n")
	}
	return r
}

// readStandard reads with the standard library.
func readStandard(raw []byte) (r reading, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	var from, to []*mail.Address
	var words mime.WordDecoder
	r.Subject, err = words.DecodeHeader(m.Header.Get("Subject"))
	if from, to, err = addresses(m.Header, err); err != nil {
		return r, err
	}
	r.From, r.Sender, r.Name, r.To = from[0].Address, from[0].Name, to[0].Name, to[0].Address
	if reply, err := m.Header.AddressList("Reply-To"); err == nil {
		r.Reply = reply[0].Address
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return r, err
	}
	if kind == "text/plain" {
		r.Text, err = decoded(m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return r, err
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		text, err := decoded(part.Header.Get("Content-Transfer-Encoding"), part)
		if err != nil {
			return r, err
		}
		switch kind, _, err = mime.ParseMediaType(part.Header.Get("Content-Type")); {
		case err != nil:
			return r, err
		case kind == "text/plain":
			r.Text = text
		case kind == "text/html":
			r.HTML = text
		}
	}
}

func addresses(h mail.Header, err error) (from, to []*mail.Address, _ error) {
	from, err1 := h.AddressList("From")
	to, err2 := h.AddressList("To")
	return from, to, errors.Join(err, err1, err2)
}

func decoded(encoding string, from io.Reader) (string, error) {
	if encoding == "base64" {
		from = base64.NewDecoder(base64.StdEncoding, from)
	} else {
		from = quotedprintable.NewReader(from)
	}
	b, err := io.ReadAll(from)
	return string(b), err
}

// readMessage reads with go-message.
func readMessage(raw []byte) (r reading, err error) {
	m, err := gomessage.CreateReader(bytes.NewReader(raw))
	if err != nil {
		return r, err
	}
	r.Subject, err = m.Header.Subject()
	from, err1 := m.Header.AddressList("From")
	to, err2 := m.Header.AddressList("To")
	if err = errors.Join(err, err1, err2); err != nil {
		return r, err
	}
	r.From, r.Sender, r.Name, r.To = from[0].Address, from[0].Name, to[0].Name, to[0].Address
	if reply, err := m.Header.AddressList("Reply-To"); err == nil && len(reply) > 0 {
		r.Reply = reply[0].Address
	}
	for {
		part, err := m.NextPart()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		h, inline := part.Header.(*gomessage.InlineHeader)
		if !inline {
			r.Attachments++
			continue
		}
		kind, _, err := h.ContentType()
		if err != nil {
			return r, err
		}
		text, err := io.ReadAll(part.Body)
		if err != nil {
			return r, err
		}
		if kind == "text/html" {
			r.HTML = string(text)
		} else {
			r.Text = string(text)
		}
	}
}

// readInJavaScript reads all mails with postal-mime and verifies their signatures with
// mailauth, in one process of Node.js.
func readInJavaScript(t *testing.T, record string, mails [][]byte) (list []reading) {
	t.Helper()
	modules := localstack.NPMPackages(t, filepath.Join("testdata", "reader"))
	input, err := json.Marshal(map[string]any{"record": record, "mails": mails})
	musttest.OK(t, err)
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "reader", "read.mjs"), modules)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	if err := json.Unmarshal(out, &list); err != nil || len(list) != len(mails) {
		t.Fatalf("%d of %d mails, %v\n%s", len(list), len(mails), err, out)
	}
	return list
}

// TestMailProgramsReadOurMails: three libraries in two languages read mails of all forms that a
// real server received, with and without a signature. A JavaScript library verifies the
// signatures, so that the library that signs is not its own judge.
func TestMailProgramsReadOurMails(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	musttest.OK(t, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	musttest.OK(t, err)
	for name, dkim := range map[string]*smtp.DKIM{
		"unsigned": nil,
		"ed25519":  {Domain: "shop.example", Selector: "drop", Key: edwards},
		"rsa":      {Domain: "shop.example", Selector: "drop", Key: rivest},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(relay).start(t, nil)
			s := r.sender(t, func(c *smtp.Config) { c.DKIM = dkim })
			messages := sendertest.Messages(delivery.Email, 4)
			contents := []delivery.Content{
				{Title: "Only text = no page", Text: "Opens at 12:00.\r\n--\r\n=_ or =3D\r\n.\r\n", HTML: ""},
				{Title: "Text and page", Text: "Opens at 12:00.", HTML: "<p style=\"color: red\">Opens at 12:00 = noon.</p>"},
				{Title: strings.Repeat("春季满减券 🎉", 20), Text: "八点开抢，先到先得。", HTML: "<p>八点开抢，先到先得。</p>", Sender: "茶屋 · Tea, \"House\"", ReplyTo: "help@tea.example"},
				{Title: "只有文字", Text: strings.Repeat("八点开抢，先到先得。", 50), Sender: "Tea House"},
			}
			names := []string{"Ann Lee", `Lee, "Ann"`, "王小明", "欧阳·娜娜 🎉"}
			wanted := make([]reading, len(messages))
			mails := make([][]byte, len(messages))
			record := ""
			if dkim != nil {
				record = dkim.Record()
			}
			for i := range messages {
				m := &messages[i]
				m.Content, m.To.Name, m.OptOutURL = &contents[i], names[i], "https://shop.example/u/AQE?a=1"
				want(t, s.Send(t.Context(), messages[i:i+1]), delivery.Delivered)
				mails[i] = r.last(t).raw
				text, html := delivery.OptOut(*m)
				wanted[i] = reading{Subject: m.Content.Title, From: "drops@shop.example", Sender: cmp.Or(m.Content.Sender, "Dropbell"), Reply: m.Content.ReplyTo, Name: m.To.Name, To: m.To.Email, Text: text, HTML: html}.even()
			}
			for i, raw := range mails {
				for library, read := range map[string]func([]byte) (reading, error){"the standard library": readStandard, "go-message": readMessage} {
					if got, err := read(raw); err != nil || got.even() != wanted[i] {
						t.Errorf("mail %d, %s: %v\ngot  %+v\nwant %+v\n%s", i, library, err, got, wanted[i], raw)
					}
				}
			}
			for i, got := range readInJavaScript(t, record, mails) {
				if dkim != nil {
					wanted[i].Signature = "pass"
				}
				if got.even() != wanted[i] {
					t.Errorf("mail %d, JavaScript:\ngot  %+v\nwant %+v\n%s", i, got, wanted[i], mails[i])
				}
			}
		})
	}
}

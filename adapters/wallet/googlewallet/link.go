package googlewallet

import (
	"strconv"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"dropbell/adapters/sender"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/message"
)

// saveURL is where Google takes passes; a signed pass follows.
const saveURL = "https://pay.google.com/gp/v/save/"

const (
	// maxLink is the longest signed pass in a link, in bytes; browsers cut longer links.
	maxLink = 1800
	// maxLogo is the longest address of a logo or a picture that a link can hold.
	maxLogo = 200
)

// An offerClass is a drop in one language (REST resource offerclass).
type offerClass struct {
	ID         string `json:"id"`
	IssuerName string `json:"issuerName"`
	Title      string `json:"title"`
	Provider   string `json:"provider"`
	Redemption string `json:"redemptionChannel"`
	Review     string `json:"reviewStatus"`
	Background string `json:"hexBackgroundColor"`
	TitleImage *image `json:"titleImage,omitempty"`
	HeroImage  *image `json:"heroImage,omitempty"`
}

type image struct {
	Source struct {
		URI string `json:"uri"`
	} `json:"sourceUri"`
	Text *localized `json:"contentDescription,omitempty"`
}

// localized is a text in the language of the pass.
type localized struct {
	Default translated `json:"defaultValue"`
}

type translated struct {
	Language string `json:"language"`
	Value    string `json:"value"`
}

// imageAt returns the image at the address, which a link can hold; nil = none.
func imageAt(address string) *image {
	if address == "" || len(address) > maxLogo {
		return nil
	}
	i := &image{}
	i.Source.URI = address
	return i
}

// An offerObject is one coupon (REST resource offerobject).
type offerObject struct {
	ID      string   `json:"id"`
	ClassID string   `json:"classId"`
	State   string   `json:"state"`
	Barcode barcode  `json:"barcode"`
	Valid   interval `json:"validTimeInterval"`
}

type barcode struct {
	Type  string `json:"type"`
	Value string `json:"value"`
	Text  string `json:"alternateText"`
}

type interval struct {
	End struct {
		Date string `json:"date"`
	} `json:"end"`
}

// claims are the payload of the signed pass ("JWT" of the Google Wallet API).
type claims struct {
	Issuer   string  `json:"iss"`
	Audience string  `json:"aud"`
	Type     string  `json:"typ"`
	At       int64   `json:"iat"`
	Payload  payload `json:"payload"`
}

type payload struct {
	Classes []offerClass  `json:"offerClasses"`
	Objects []offerObject `json:"offerObjects"`
}

func (i *Issuer) objectID(couponID int64) string {
	return i.cfg.Issuer + ".dropbell-coupon-" + strconv.FormatInt(couponID, 10)
}

// classID names the drop in one language. A class has one title, so each language of a drop's
// passes needs a class of its own.
func (i *Issuer) classID(p wallet.Pass) string {
	return i.cfg.Issuer + ".dropbell-drop-" + strconv.FormatInt(p.TemplateID, 10) + "-" + languageName(p.Language)
}

// languageName is the language as ids may contain it.
func languageName(tag string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return -1
	}, tag)
	if len(name) == 0 || len(name) > 35 {
		return message.English
	}
	return name
}

// Link returns the address that saves the pass; see [wallet.Linker]. Nothing is sent to Google
// before the owner follows the link. Long texts are cut so that the link is short enough.
func (i *Issuer) Link(p wallet.Pass) (string, error) {
	class := offerClass{ID: i.classID(p), IssuerName: p.Shop, Provider: p.Shop, Redemption: "BOTH", Review: "UNDER_REVIEW", Background: p.Colour}
	class.TitleImage, class.HeroImage = imageAt(p.Logo), imageAt(p.Picture)
	if class.HeroImage != nil && p.PictureText != "" {
		class.HeroImage.Text = &localized{translated{languageName(p.Language), p.PictureText}}
	}
	number := strconv.FormatInt(p.CouponID, 10)
	object := offerObject{ID: i.objectID(p.CouponID), ClassID: class.ID, State: state(p.State), Barcode: barcode{"QR_CODE", number, number}}
	object.Valid.End.Date = p.ExpiresAt.Format(time.RFC3339)
	title := p.Name
	if p.Worth != "" {
		title = p.Worth + " · " + p.Name
	}
	for most := 200; ; most = most * 3 / 4 {
		class.Title, class.IssuerName, class.Provider = cut(title, most), cut(p.Shop, most), cut(p.Shop, most)
		signed, err := i.sign(claims{i.email, "google", "savetowallet", i.cfg.Now().Unix(), payload{[]offerClass{class}, []offerObject{object}}})
		if err != nil || len(signed) <= maxLink || most < 10 {
			return saveURL + signed, err
		}
		class.TitleImage, class.HeroImage = nil, nil
	}
}

// cut returns the first characters of s.
func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func (i *Issuer) sign(c claims) (string, error) {
	headers := jws.NewHeaders()
	if err := headers.Set(jws.TypeKey, "JWT"); err != nil {
		return "", err
	}
	signed, err := jws.Sign(sender.JSON(c), jws.WithKey(jwa.RS256(), i.key, jws.WithProtectedHeaders(headers)))
	return string(signed), err
}

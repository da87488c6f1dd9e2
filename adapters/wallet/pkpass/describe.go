package pkpass

import (
	"fmt"
	"strconv"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/message"
)

// A document is pass.json of a coupon ("Pass" of Apple's documentation).
type document struct {
	FormatVersion       int       `json:"formatVersion"`
	PassTypeIdentifier  string    `json:"passTypeIdentifier"`
	TeamIdentifier      string    `json:"teamIdentifier"`
	SerialNumber        string    `json:"serialNumber"`
	OrganizationName    string    `json:"organizationName"`
	Description         string    `json:"description"`
	LogoText            string    `json:"logoText"`
	ForegroundColor     string    `json:"foregroundColor"`
	LabelColor          string    `json:"labelColor"`
	BackgroundColor     string    `json:"backgroundColor"`
	ExpirationDate      string    `json:"expirationDate"`
	Voided              bool      `json:"voided,omitempty"`
	SharingProhibited   bool      `json:"sharingProhibited"`
	Barcodes            []barcode `json:"barcodes"`
	Coupon              fields    `json:"coupon"`
	WebServiceURL       string    `json:"webServiceURL,omitempty"`
	AuthenticationToken string    `json:"authenticationToken,omitempty"`
	// UserInfo names the picture in the bundle, so that a pass with another picture is another pass.
	UserInfo *userInfo `json:"userInfo,omitempty"`
}

type userInfo struct {
	Picture string `json:"picture"`
}

type barcode struct {
	Format          string `json:"format"`
	Message         string `json:"message"`
	MessageEncoding string `json:"messageEncoding"`
	AltText         string `json:"altText"`
}

type fields struct {
	Primary   []field `json:"primaryFields"`
	Secondary []field `json:"secondaryFields"`
	Auxiliary []field `json:"auxiliaryFields"`
	Back      []field `json:"backFields"`
}

type field struct {
	Key             string `json:"key"`
	Label           string `json:"label"`
	Value           string `json:"value"`
	DateStyle       string `json:"dateStyle,omitempty"`
	TimeStyle       string `json:"timeStyle,omitempty"`
	IgnoresTimeZone bool   `json:"ignoresTimeZone,omitempty"`
	ChangeMessage   string `json:"changeMessage,omitempty"`
}

// words are the texts of a pass that do not come from the shop.
type words struct {
	expires, state, shop, about, number string
	states                              map[coupon.State]string
}

// wordsFor returns the words in a language: Chinese, or English for all others.
func wordsFor(language string) words {
	if message.BuiltInLanguage(language) == "zh" {
		return words{expires: "有效期至", state: "状态", shop: "商家", about: "说明", number: "券号",
			states: map[coupon.State]string{coupon.Unused: "可使用", coupon.Locked: "订单支付中", coupon.Used: "已使用", coupon.Expired: "已过期", coupon.Revoked: "已失效", coupon.Suspended: "核查中"}}
	}
	return words{expires: "Valid until", state: "Status", shop: "Shop", about: "About", number: "Coupon number",
		states: map[coupon.State]string{coupon.Unused: "Ready to use", coupon.Locked: "Held for an order", coupon.Used: "Used", coupon.Expired: "Expired", coupon.Revoked: "Withdrawn", coupon.Suspended: "Being checked"}}
}

// describe returns the content of the pass. The barcode is the coupon's number, by which a
// shop's payment locks the coupon.
func describe(p wallet.Pass) document {
	w := wordsFor(p.Language)
	number, expires := strconv.FormatInt(p.CouponID, 10), p.ExpiresAt.Format(time.RFC3339)
	d := document{FormatVersion: 1, SerialNumber: number, OrganizationName: p.Shop, Description: p.Shop + ": " + p.Name, LogoText: p.Shop,
		ForegroundColor: colour(p.Ink), LabelColor: colour(p.Ink), BackgroundColor: colour(p.Colour), ExpirationDate: expires, Voided: p.Voided(),
		SharingProhibited: true,
		Barcodes:          []barcode{{Format: "PKBarcodeFormatQR", Message: number, MessageEncoding: "iso-8859-1", AltText: number}},
		Coupon: fields{
			Primary:   []field{{Key: "worth", Label: p.Name, Value: p.Worth}},
			Secondary: []field{{Key: "expires", Label: w.expires, Value: expires, DateStyle: "PKDateStyleMedium", TimeStyle: "PKDateStyleShort", IgnoresTimeZone: true}},
			Auxiliary: []field{{Key: "state", Label: w.state, Value: w.states[p.State], ChangeMessage: "%@"}},
			Back:      []field{{Key: "number", Label: w.number, Value: number}, {Key: "shop", Label: w.shop, Value: p.Shop}},
		}}
	if len(p.Strip) > 0 {
		d.UserInfo = &userInfo{p.Picture}
	}
	if p.Description != "" {
		d.Coupon.Back = append(d.Coupon.Back, field{Key: "about", Label: w.about, Value: p.Description})
	}
	return d
}

// colour returns a valid "#rrggbb" as passes have it.
func colour(s string) string {
	n, _ := strconv.ParseUint(s[1:], 16, 32)
	return fmt.Sprintf("rgb(%d, %d, %d)", n>>16, n>>8&0xff, n&0xff)
}

// Package coupons holds the pages of coupons, redeem codes, lists that coupons
// are given to, and the calendar of notices before coupons expire.
package coupons

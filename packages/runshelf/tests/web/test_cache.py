"""The cache of the pages."""

from runshelf.web.cache import Cache


def test_the_cache_drops_the_least_recently_used() -> None:
    cache = Cache(capacity=3 * 1256)
    for key in "abc":
        cache.put(key, key.upper(), size=1000)
    assert cache.get("a") == "A"
    cache.put("d", "D", size=1000)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    cache.put("e", "E", size=10_000_000)
    assert cache.get("e") is None
    assert cache.bytes <= 3 * 1256

"""Names of the question templates that come with Easel; commands import them for their help."""

# In the order on the page. To add a question, add its file and its name here.
QUESTION_NAMES = (
    *("lexical-frequency", "political-spectrum", "translation-systems"),
    *("translation-adequacy", "translation-fluency", "translation-adequacy-and-fluency", "translation-quality"),
    "translation-ranking",
    *("answers-of-language-models", "systems-against-a-baseline", "naturalness"),
    *("sentiment", "emotion-intensity", "emotions", "convincing-arguments", "word-senses"),
)
